# frozen_string_literal: true

require "open3"
require "tmpdir"

# Runs programs in processes of their own, with this checkout's Ikra and nothing else.
module RubyProcess
  # What a program prints. The program is a text, after `require "ikra"`. `environment` has String keys. `folder` is
  # where the program is written: kernels are kept on disk by the place of their block.
  def run_ruby(program, *arguments, environment: {}, seconds: 120, folder: nil)
    return Dir.mktmpdir("ikra") { |made| run_ruby(program, *arguments, environment:, seconds:, folder: made) } unless folder

    path = File.join(folder, "program.rb")
    text = "require \"ikra\"\n#{program}"
    unless File.exist?(path) && File.read(path) == text
      # The file appears as a whole or not at all, because another thread's process may be about to read it.
      own = "#{path}.#{Thread.current.object_id}"
      File.write(own, text)
      File.rename(own, path)
    end
    command = [RbConfig.ruby, "--disable=gems", "-W0", "-I#{File.expand_path("../../lib", __dir__)}", path, *arguments]
    output, status = Open3.capture2e(environment, "timeout", "-s", "KILL", seconds.to_s, *command)
    expect(status).to be_success, "the program ended with #{status}:\n#{output}"
    output
  end

  # What a program prints of `found`, the value of `expression`, during which a full collection runs at each allocation.
  # A collection in a process of its own takes 4 ms; among all specs it takes ten to twenty times as long.
  def run_under_gc_stress(expression, before: "", show: "found", **options)
    run_ruby(<<~RUBY, **options)
      #{before}
      story = -> { #{expression} }
      story.call # compiles, for which the collector would need minutes
      GC.stress = true
      found = story.call
      GC.stress = false
      p(#{show})
    RUBY
  end
end

RSpec.configure { |config| config.include RubyProcess }
