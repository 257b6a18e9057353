# frozen_string_literal: true

require_relative "ikra/version"
require "ikra/ikra" # the native extension
