# A clause may name a module that exception classes include.
#
# elements = [0, 1, 2]
# gives: [:busy, :gone, 2]

module Temporary; end

class Busy < StandardError
  include Temporary
end

class Gone < IOError; end

elements.pmap do |x|
  raise Busy if x == 0
  raise Gone if x == 1
  x
rescue Temporary => e
  e.is_a?(StandardError) ? :busy : :wrong
rescue Exception => e
  Gone === e && Exception === e ? :gone : :wrong
end
