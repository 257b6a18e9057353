# frozen_string_literal: true

require "open3"
require "tempfile"

# Programs in processes of their own, with this checkout's Ikra and nothing else.
module RubyProcess
  # What a program prints. It is given as text, with `require "ikra"` in front; `environment` has String keys.
  def run_ruby(program, *arguments, environment: {}, seconds: 120)
    Tempfile.create(["program", ".rb"]) do |file|
      file.write("require \"ikra\"\n#{program}")
      file.close
      command = [RbConfig.ruby, "--disable=gems", "-W0", "-I#{File.expand_path("../../lib", __dir__)}", file.path, *arguments]
      output, status = Open3.capture2e(environment, "timeout", "-s", "KILL", seconds.to_s, *command)
      expect(status).to be_success, "the program ended with #{status}:\n#{output}"
      output
    end
  end
end

RSpec.configure { |config| config.include RubyProcess }
