# frozen_string_literal: true

# Blocks are compiled from their source. Ruby keeps the source of what is loaded from here on, +eval+ and IRB included;
# files that were loaded before are read again.
RubyVM.keep_script_lines = true

# Runs plain Ruby blocks over Arrays and Ranges on a GPU, or on all cores.
module Ikra
end

require_relative "version"
require_relative "error"
require "ikra/ikra" # the native extension
require_relative "config"
require_relative "position"
require_relative "memory"
require_relative "fallback"
require_relative "neighbours"
require_relative "stencil"
require_relative "operation"
require_relative "enumerator"
require_relative "lazy"
require_relative "lazy/stage"
require_relative "lazy/plan"
require_relative "lazy/kernel"
require_relative "parallel"
require_relative "profile"
require_relative "explain"
require_relative "doctor"

Ikra.__library(__dir__)
Ikra::Config.read_environment
