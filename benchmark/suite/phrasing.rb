# frozen_string_literal: true

require_relative "program"

# Other phrasings of a program: the same computation, as different people write it. They are in
# benchmark/phrasings/NAME.rb.
#
# Each is a subclass of the program that is named by what is different in it. It has a #compute of its own and, where
# its data look different, #state and #outputs. Input and comparison are the program's.
#
#   class Program::Sum
#     phrasing "each_slice" do
#       def compute(floats) = …
#     end
#   end
class Program
  PHRASINGS = File.expand_path("../phrasings", __dir__)

  class << self
    def phrasing(name, &definitions) = phrasings[name] = Class.new(self, &definitions)
    def phrasings = @phrasings ||= {}

    # The programs that have phrasings.
    def phrased = names.select { |name| File.exist?(File.join(PHRASINGS, "#{name}.rb")) }
  end

  # A program for each phrasing of this one, by name. The first is that of ikra.rb.
  def phrasings
    require File.join(PHRASINGS, "#{name}.rb")
    all = { "ikra.rb" => Class.new(self.class).tap { |own| own.define_method(:compute, compute_of("ikra.rb")) }, **self.class.phrasings }
    all.transform_values { |phrasing| phrasing.new(name) }
  end

  # The outputs on this input.
  def run(input, given = state(input)) = outputs(given, compute(given))

  # The same in plain Ruby.
  def in_ruby(input)
    compute_of("ruby.rb")
    run(input)
  end

  private

  # The #compute of a version. It takes the place of another version's.
  def compute_of(version)
    verbose, $VERBOSE = $VERBOSE, nil
    load file(version)
    self.class.instance_method(:compute)
  ensure
    $VERBOSE = verbose
  end
end
