# Elements without a result have a number stored for them that changes nothing where all are reduced.
#
# limit = 2
# holes: 9
# gives: [Ikra::Hole, Ikra::Hole, 30, 40]

module Ikra
  module Hole
  end
end

[1, 2, 3, 4].pmap { |x| x > limit ? x * 10 : Ikra::Hole }
