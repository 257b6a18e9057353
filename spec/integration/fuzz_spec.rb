# frozen_string_literal: true

require "tmpdir"
require_relative "../support/fuzz/runners"

RSpec.describe "generated programs" do
  let(:seed) { 2 }

  # The core's own test runs some thousands of these; here they go from Ruby to Ruby.
  (Backends.present - [:cuda_shim]).each do |backend|
    it "give on #{backend} what Ruby gives, and change nothing where they raise" do
      skip "the cases are in the words of Ruby 3.1" unless RUBY_VERSION.start_with?("3.1.")

      Dir.mktmpdir do |folder|
        Fuzz::Runners.write(folder, seed, 0...200)
        outcomes = Fuzz::Runners.bridge(folder, backend).transform_values { |verdicts| verdicts[backend] }
        expect(outcomes.size).to be >= 195
        expect(outcomes.select { |_, (outcome, _)| outcome == "failed" }).to be_empty
        expect(outcomes.count { |_, (outcome, _)| outcome == "refused" }).to be <= 10
      end
    end
  end
end
