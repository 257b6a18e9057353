# frozen_string_literal: true

module Ikra
  # The value of an element that has none: one that a chain or `pfilter_map` leaves out. Kernels reduce or list only the
  # other elements, so this value never leaves the sections of a chain. Programs do not know it, so no value of theirs
  # is one.
  # @api private
  module Hole
  end

  # The value of the element that ends a chain (`take_while`).
  # @api private
  module Stop
  end
  private_constant :Hole, :Stop
end
