# frozen_string_literal: true

# Blocks are compiled from their source. From here on Ruby keeps the source of what it loads, including +eval+ and IRB.
# The source of files that were loaded before is read again.
RubyVM.keep_script_lines = true

# Streams of CUDA that share a connection wait for each other. By default there are 8 connections for all sections that
# run at once. The driver looks at this when the process first uses it.
ENV["CUDA_DEVICE_MAX_CONNECTIONS"] ||= "32"

# Runs plain Ruby blocks over Arrays and Ranges on a GPU, or on all cores.
module Ikra
end

require_relative "version"
require_relative "error"
require "ikra/ikra" # the native extension
require_relative "lock"
require_relative "memo"
require_relative "config"
require_relative "position"
require_relative "memory"
require_relative "fallback"
require_relative "neighbours"
require_relative "hole"
require_relative "stencil"
require_relative "operation"
require_relative "enumerator"
require_relative "generated"
require_relative "lazy"
require_relative "lazy/stage"
require_relative "lazy/plan"
require_relative "lazy/text"
require_relative "lazy/kernel"
require_relative "lazy/total"
require_relative "parallel"
require_relative "map_reduce"
require_relative "captured_hash"
require_relative "groups"
require_relative "source"
require_relative "section"
require_relative "sections"
require_relative "sections/gate"
require_relative "sections/inline"
require_relative "sections/races"
require_relative "sections/trace"
require_relative "sections/watch"
require_relative "concurrently"
require_relative "through"
require_relative "mdarray/dtype"
require_relative "mdarray/layout"
require_relative "mdarray/storage"
require_relative "mdarray/expression"
require_relative "mdarray/operators"
require_relative "mdarray/numbers"
require_relative "mdarray/text"
require_relative "mdarray/stretch"
require_relative "mdarray/tiles"
require_relative "mdarray/run"
require_relative "mdarray/around"
require_relative "mdarray"
require_relative "mdarray/creation"
require_relative "mdarray/elementwise"
require_relative "mdarray/iterators"
require_relative "mdarray/reductions"
require_relative "mdarray/groups"
require_relative "mdarray/linear"
require_relative "mdarray/views"
require_relative "mdarray/inside"
require_relative "mdarray/protocols"
require_relative "mdarray/exchange"
require_relative "mdarray/npy"
require_relative "mdarray/picture"
require_relative "resident"
require_relative "profile"
require_relative "explain"
require_relative "doctor"

Ikra.__library(__dir__)
Ikra::Config.read_environment
