# frozen_string_literal: true

require_relative "ikra/library"

# This file adds the parallel methods to Array and Range. Hash, Set and Enumerator get them through +to_a+, and Hash
# gets +top+. +require "ikra/refinements"+ offers the methods without these changes.
Array.include(Ikra::Parallel, Ikra::Parallel::OfArrays)
Array.extend(Ikra::Parallel::Making)
Range.include(Ikra::Parallel)
[Hash, Set, Enumerator].each { |owner| owner.include(Ikra::Parallel::Through) }
Hash.include(Ikra::Tops)
