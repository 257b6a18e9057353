# frozen_string_literal: true

# The traffic simulation of "Ikra: Object-oriented GPGPU Programming in Ruby with CUDA" (Springer & Masuhara 2016), with
# ordinary Ruby objects.

require_relative "actor"
require_relative "own_dice"
require_relative "network"
require_relative "population"
