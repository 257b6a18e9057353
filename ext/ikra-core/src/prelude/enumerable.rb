# frozen_string_literal: true

# Enumerable, over `each` alone.
module Enumerable
  def any?
    each { |x| return true if yield(x) }
    false
  end
end
