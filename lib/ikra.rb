# frozen_string_literal: true

require_relative "ikra/version"
require_relative "ikra/ikra" # the native extension
