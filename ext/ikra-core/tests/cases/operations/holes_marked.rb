# Elements without a result are marked in a column beside the others'.
#
# limit = 2
# holes: marked
# gives: [Ikra::Hole, Ikra::Hole, 30, 40]

module Ikra
  module Hole
  end
end

[1, 2, 3, 4].pmap { |x| x > limit ? x * 10 : Ikra::Hole }
