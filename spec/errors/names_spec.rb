# frozen_string_literal: true

require "timeout"

# A message names what the program wrote: Ruby's methods, and none of those that Ikra has for itself.
RSpec.describe "Messages of errors" do
  receivers = { "(1..x)" => Range, "(1.5..2.5)" => Range, "(x..)" => Range, "[x, 2]" => Array, "{ x => 2 }" => Hash, "x" => Integer, "1.5" => Float, "\"text\"" => String }
  forms = ["", "(k: 1)", "(1, 2, 3, 4)", " { |a| a }.to_a", ".size", ".each_slice(2).to_a"]
  left_out = BasicObject.instance_methods + Kernel.instance_methods + Ikra::Parallel.instance_methods

  receivers.each do |receiver, owner|
    it "name no method of Ikra's own for #{receiver}" do
      names = (owner.instance_methods - left_out).grep(/\A[a-z]\w*[?!]?\z/)
      names += owner.instance_methods.grep(/\A(first|each|bsearch|include\?|cover\?|upto|downto|step|times|cycle)\z/)
      found = names.uniq.product(forms).filter_map do |name, form|
        block = eval("proc { |x| #{receiver}.#{name}#{form} }")
        begin
          Timeout.timeout(2) { [3].pmap(backend: :reference, &block) }
          nil
        rescue Ikra::CompileError => e
          "#{name}#{form}: #{e.message}" if e.message.lines.first.match?(/__|%\w/)
        rescue Ikra::InternalError => e
          "#{name}#{form}: #{e.message}"
        rescue StandardError, NoMemoryError
          nil
        end
      end
      expect(found).to be_empty, -> { found.first(5).join("\n") }
    end
  end
end
