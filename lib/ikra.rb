# frozen_string_literal: true

require_relative "ikra/library"

# The parallel methods are Array's and Range's own, and through +to_a+ those of Hash, Set and Enumerator; +require "ikra/refinements"+ gives them without this.
Array.include(Ikra::Parallel, Ikra::Parallel::OfArrays)
Array.extend(Ikra::Parallel::Making)
Range.include(Ikra::Parallel)
[Hash, Set, Enumerator].each { |owner| owner.include(Ikra::Parallel::Through) }
