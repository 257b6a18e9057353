# frozen_string_literal: true

require_relative "library"

module Ikra
  # The parallel methods as refinements, for programs that should not change Ruby's classes.
  #
  # @example
  #   require "ikra/refinements"
  #   using Ikra::Refinements
  #   [1, 2, 3].pmap { |x| x + 1 } # => [2, 3, 4]
  module Refinements
    refine(Array) { import_methods Parallel, Parallel::OfArrays }
    refine(Array.singleton_class) { import_methods Parallel::Making }
    refine(Range) { import_methods Parallel }
    refine(::Hash) { import_methods Tops }
    [::Hash, ::Set, ::Enumerator].each { |owner| refine(owner) { import_methods Parallel::Through } }
  end
end
