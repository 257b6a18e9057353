# frozen_string_literal: true

require_relative "columns"

# The description of a benchmark program. benchmark/programs/NAME/program.rb has a subclass for each.
#
# Its folder has a file for each version:
#
# * ruby.rb, ikra.rb, md_array.rb (Ikra::MDArray);
# * c.c, and cuda.cu with cuda.rb (the launches);
# * c_tuned.c and cuda_tuned.cu, with the optimisations that a person would add second;
# * numba.py, numba_cuda.py, cupy.py, jax.py.
#
# model.rb, if it exists, is the common part of ruby.rb and ikra.rb. Versions in Ruby define #compute of the subclass,
# which is timed. It gets what #state made of the input. From what it gives or changed, #outputs makes the outputs.
class Program
  HERE = File.expand_path("../programs", __dir__)

  class << self
    # Problem sizes by name. :ruby is the one for plain Ruby, where it would take too long at the chosen size.
    #
    #   sizes tiny: 8, small: 64, normal: 512, ruby: 32, scaling: [8, 16, 32]
    #
    # scaling: from about a hundred elements to ten million, if input and objects can be made and a run takes less than
    # a minute on a few cores. Else up to the last size for which that holds.
    def sizes(**sizes)
      sizes.empty? ? @sizes : @sizes = sizes.freeze
    end

    def find(name)
      require File.join(HERE, name, "program.rb")
      constant = name.split("_").map(&:capitalize).join
      # Each has a namespace of its own, because examples have the same names.
      const_defined?(constant, false) ? const_get(constant) : Object.const_get(constant)::Benchmark
    end

    # [name, size] of every size of these programs' scales, or of the first +steps+ of each. The least sizes of all
    #   programs come first.
    def places(names, steps: nil)
      scales = names.to_h { |name| [name, find(name).sizes.fetch(:scaling)] }
      (0...(steps || scales.values.map(&:size).max)).flat_map { |step| scales.filter_map { |name, sizes| [name, sizes[step]] if sizes[step] } }
    end

    # The programs that PROGRAMS names, else all.
    def chosen = Harness.chosen("PROGRAMS", names)

    # The names of all programs.
    def names = Dir[File.join(HERE, "*/program.rb")].map { |path| File.basename(File.dirname(path)) }.sort
  end

  attr_reader :name

  def initialize(name)
    @name = name
  end

  def folder = File.join(HERE, name)
  def file(version) = File.join(folder, version)
  def has?(version) = File.exist?(file(version))

  # The common files of the versions in Ruby.
  def model = [file("model.rb")].select { |path| File.exist?(path) }

  # The size for plain Ruby.
  def ruby_size(size) = [self.class.sizes.fetch(:ruby, size), size].min

  # @return [Columns] the input of all versions, made of random numbers
  def input(_size, _random) = raise(NotImplementedError)

  # The argument of #compute. Where runs change it, each gets a new one.
  def state(input) = input

  # Whether runs change the state, so that each needs its own.
  def changes? = false

  # @return [Hash{Symbol => Array}] the outputs of a version in Ruby, from the argument and the result of #compute
  def outputs(_state, _result) = raise(NotImplementedError)

  # The number of elements of a size, for the scale of a picture.
  def elements(size) = size

  # Floating-point operations of one run (operations, for programs on Integers), and the least number of bytes that any
  # version must move to and from memory.
  def work(_input, _outputs) = raise(NotImplementedError)

  # How many times as many operations one size takes as another. Plain Ruby's time is scaled up by it.
  def ratio(size, small) = (size / small.to_f)

  # The numbers that the project promises. :cpu and :cuda: the speed of Ikra's kernels against those by hand with the
  # same arithmetic. per_core: that of the CPU's kernels against plain Ruby, for each core. ms: the most milliseconds at
  # the normal size, of a kernel, and of the rest of a call (ms: { cuda: { kernel: 2, beside: 50 } }).
  def targets = { cpu: 0.9, cuda: 0.95 }

  # The relative tolerance of a number, and the reason for it. nil where the bits must be the same.
  def tolerance = nil

  # The same for versions in Python, whose compilers may contract, vectorise, or order operations differently.
  def loose_tolerance = [1e-9, "compilers of the libraries contract multiplications and additions, and combine in other orders"]

  # Why these outputs are not the expected ones; nil where they are. For chaotic programs a subclass says what else
  # counts as equal.
  def difference(expected, actual, loose: false)
    expected.each do |name, numbers|
      found = actual.fetch(name) { return "no #{name}" }
      return "#{name} has #{found.size} values, not #{numbers.size}" unless numbers.size == found.size

      reason = difference_of(name, numbers, found, loose)
      return reason if reason
    end
    nil
  end

  private

  def difference_of(name, expected, actual, loose)
    within, = loose ? (loose_tolerance || tolerance) : tolerance
    within = nil unless expected.first.is_a?(Float)
    return if !within && bits(expected) == bits(actual)

    scale = within ? [expected.sum { |value| value.abs } / expected.size, 1e-300].max : 0.0
    index = expected.each_index.find do |at|
      within ? !((expected[at] - actual[at]).abs <= within * [expected[at].abs, scale].max) : bits([expected[at]]) != bits([actual[at]])
    end
    "#{name}[#{index}] is #{actual[index]}, not #{expected[index]}" if index
  end

  def bits(numbers) = numbers.first.is_a?(Float) ? numbers.pack("d*") : numbers
end
