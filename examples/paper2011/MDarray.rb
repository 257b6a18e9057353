# frozen_string_literal: true

# The class of Nishiguchi and Masuhara, "GPGPU in Ruby with array iterators" (2011), under the name in that paper.
require "ikra"

MDarray = Ikra::MDArray
