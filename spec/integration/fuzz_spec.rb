# frozen_string_literal: true

require "tmpdir"
require_relative "../support/fuzz/runners"

RSpec.describe "generated programs" do
  let(:seed) { 2 }

  # The core's own test runs some thousands of these programs. Here they run from Ruby to Ruby.
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

  # Programs of single kinds (spec/support/fuzz/kinds.rb); many with IKRA_EXHAUSTIVE=1.
  it "of single kinds give what Ruby gives, or are refused" do
    skip "the words are those of Ruby 3.1" unless RUBY_VERSION.start_with?("3.1.")

    script = File.expand_path("../support/fuzz/kinds.rb", __dir__)
    count = ENV["IKRA_EXHAUSTIVE"] ? 2000 : 6
    backends = (Backends.present - [:cuda_shim]).map(&:to_s)
    output = IO.popen([RbConfig.ruby, "--disable=gems", "-I#{Fuzz::Runners::ROOT}/lib", script, "all", count.to_s, seed.to_s, "0", *backends], &:read)
    failures, tallies = output.lines(chomp: true).partition { |line| !line.match?(/\A\w+: \d+ \w+/) }
    expect(failures).to be_empty, -> { failures.first(40).join("\n") }
    expect(tallies.size).to eq(13)
    expect(tallies.select { |line| line.match?(/: (.*, )?[1-9]\d* equal/) }.size).to be >= 12
  end
end
