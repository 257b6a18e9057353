# frozen_string_literal: true

module Ikra
  # The value of an element that has none: what a chain leaves out, or `pfilter_map`. It never comes out of a chain's sections: kernels reduce what is
  # there, or list it. Programs do not know of it, so that no value of theirs is one.
  # @api private
  module Hole
  end

  # What the element has in its place that ends a chain (`take_while`).
  # @api private
  module Stop
  end
  private_constant :Hole, :Stop
end
