# frozen_string_literal: true

require "tmpdir"
require_relative "../support/method_table"

# Each method that kernels know, with each form of its arguments: Ruby's answer, or a CompileError. A run takes a fixed
# sample of them; with `IKRA_EXHAUSTIVE=1`, all.
RSpec.describe "The table of methods" do
  def differences(backend, groups, count, random)
    Dir.mktmpdir do |folder|
      groups.sample(groups.size, random: random).flat_map do |group|
        known = MethodTable.names(group).select { |name| MethodTable.known?(group, name, folder) }
        all = known.flat_map { |name| MethodTable.forms(group, name).map { |code| MethodTable::Case.new(group, name, code) } }
        cases = all.sample(count || all.size, random: random)
        expect(cases).not_to be_empty, group.name
        cases.zip(MethodTable.blocks(cases, folder)).filter_map { |one, make| MethodTable.difference(one, make, backend) }.grep(String)
      end
    end
  end

  before { skip "the words are those of Ruby 3.1" unless RUBY_VERSION.start_with?("3.1.") }

  (Backends.present & %i[reference cpu]).each do |backend|
    it "has Ruby's answers on #{backend}, or none" do
      random = Random.new(48)
      slow = ENV.fetch("IKRA_EXHAUSTIVE", nil)
      groups = slow ? MethodTable::GROUPS : MethodTable::GROUPS.sample(backend == :reference ? 4 : 2, random: random)
      verbose, $VERBOSE = $VERBOSE, nil
      found = differences(backend, groups, slow ? nil : 25, random)
      unknown = found.reject { |text| MethodTable::KNOWN.keys.any? { |known| text.match?(known) } }
      expect(unknown).to be_empty, -> { unknown.first(10).join("\n") }
      # A known difference is listed as pending.
      pending(found.map { |text| MethodTable::KNOWN.find { |known, _| text.match?(known) }.last }.uniq.join("; ")) && raise(found.first) if found.any?
    ensure
      $VERBOSE = verbose
    end
  end
end
