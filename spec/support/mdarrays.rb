# frozen_string_literal: true

# For the specs of MDArray. Groups run on each backend: on all, or on all quick ones. `IKRA_BACKEND` names a single one
# instead.
module MDArrays
  # For example groups.
  module Groups
    def on_quick_backends(&examples) = on(Backends.present.size == 1 ? Backends.present : Backends.present - [:cuda_shim], &examples)

    def on_all_backends(&examples) = on(Backends.present, &examples)

    private

    def on(names, &examples)
      names.each do |name|
        context "on #{name}" do
          around do |example|
            before = Ikra.config.backend
            Ikra.config.backend = name
            example.run
          ensure
            Ikra.config.backend = before
          end
          class_exec(name, &examples)
        end
      end
    end
  end

  # For examples: methods of arrays within arrays.
  module Examples
    def md(...) = Ikra::MDArray.new(...)

    # The nested array, with each element replaced.
    def deep_map(nested, &block) = nested.is_a?(Array) ? nested.map { |part| deep_map(part, &block) } : block.call(nested)

    # Combines the elements of two nested arrays, whose dimensions of size 1 are repeated.
    def deep_zip(one, other, &block)
      return block.call(one, other) unless one.is_a?(Array) || other.is_a?(Array)

      size = [one, other].map { |part| part.is_a?(Array) ? part.size : 1 }.max
      Array.new(size) { |index| deep_zip(*[one, other].map { |part| part.is_a?(Array) ? part[part.size == 1 ? 0 : index] : part }, &block) }
    end

    # Here 1 is not 1.0, and NaN equals NaN.
    def same_as(nested) = satisfy("be #{nested.inspect[0, 200]}") { |array| (array.is_a?(Ikra::MDArray) ? array.to_a : array).inspect == nested.inspect }
  end
end

RSpec.configure do |config|
  config.extend MDArrays::Groups
  config.include MDArrays::Examples
end
