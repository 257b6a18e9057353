# frozen_string_literal: true

require "ikra"

Dir[File.join(__dir__, "support", "*.rb")].sort.each do |file|
  require file unless File.basename(file) == "fuzz.rb" # a program of its own
end

# Compares calls with sig/ikra.rbs: rake spec:signatures.
require_relative "support/signatures/calls" if ENV.key?("IKRA_SIGNATURES")

RSpec.configure do |config|
  config.warnings = true
  config.order = :random
  config.disable_monkey_patching!
  Kernel.srand config.seed

  config.expect_with(:rspec) { |expectations| expectations.syntax = :expect }
  config.mock_with(:rspec) { |mocks| mocks.verify_partial_doubles = true }
  config.shared_context_metadata_behavior = :apply_to_host_groups

  # Examples that take minutes. bin/test runs them, and so does `rspec --tag slow`.
  config.filter_run_excluding slow: true unless ENV["IKRA_SLOW"] == "1"
  # Examples that go through whole tables and take an hour. rake spec:exhaustive runs them.
  config.filter_run_excluding exhaustive: true unless ENV["IKRA_EXHAUSTIVE"] == "1"

  # The examples tagged :stress, with a collection at every allocation: rake spec:stress. It is a minor one (1), which
  # frees what was just made and nothing holds. Full ones take a hundred times as long.
  if ENV["IKRA_STRESS"] == "1"
    config.filter_run_including :stress
    config.around do |example|
      GC.stress = 1
      example.run
    ensure
      GC.stress = false
    end
  end

  config.extend Backends::Groups
  config.include Backends::Examples
  config.include SameAsRuby::Examples
  config.before(:suite) { Backends.announce(RSpec.configuration.output_stream) }
end
