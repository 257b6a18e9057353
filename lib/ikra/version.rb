# frozen_string_literal: true

module Ikra
  # The version of the gem, "major.minor.patch". The extension is of the same version.
  VERSION = "0.1.0"
end
