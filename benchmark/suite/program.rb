# frozen_string_literal: true

require_relative "columns"

# What a benchmark program says of itself; benchmark/programs/NAME/program.rb has a subclass for each.
#
# Its folder has a file for each version that there is: ruby.rb, ikra.rb, md_array.rb (Ikra::MDArray), c.c, cuda.cu with cuda.rb (the launches), c_tuned.c and
# cuda_tuned.cu (what a person would write second), numba.py, numba_cuda.py, cupy.py, jax.py. model.rb, where there is one, has what ruby.rb and ikra.rb share. Versions in Ruby define
# #compute of the subclass, which is what is timed; it is given what #state made of the input, and what it gives or changed becomes outputs by #outputs.
class Program
  HERE = File.expand_path("../programs", __dir__)

  class << self
    # Problem sizes by name, and the one that plain Ruby is timed at where it would take too long at the chosen one.
    #
    #   sizes tiny: 8, small: 64, normal: 512, ruby: 32, scaling: [8, 16, 32]
    #
    # scaling: about a hundred elements to ten million, or as many as input and objects can be made of, and one run takes, in less than a minute on a few cores.
    def sizes(**sizes)
      sizes.empty? ? @sizes : @sizes = sizes.freeze
    end

    def find(name)
      require File.join(HERE, name, "program.rb")
      constant = name.split("_").map(&:capitalize).join
      # a namespace of their own: examples have the same names
      const_defined?(constant, false) ? const_get(constant) : Object.const_get(constant)::Benchmark
    end

    # [name, size] of every size of these programs' scales, or of the first +steps+ of each: the least sizes of all programs first.
    def places(names, steps: nil)
      scales = names.to_h { |name| [name, find(name).sizes.fetch(:scaling)] }
      (0...(steps || scales.values.map(&:size).max)).flat_map { |step| scales.filter_map { |name, sizes| [name, sizes[step]] if sizes[step] } }
    end

    # The names of those that PROGRAMS names, else of all.
    def chosen = Harness.chosen("PROGRAMS", names)

    # All programs' names.
    def names = Dir[File.join(HERE, "*/program.rb")].map { |path| File.basename(File.dirname(path)) }.sort
  end

  attr_reader :name

  def initialize(name)
    @name = name
  end

  def folder = File.join(HERE, name)
  def file(version) = File.join(folder, version)
  def has?(version) = File.exist?(file(version))

  # Files with what the versions in Ruby share.
  def model = [file("model.rb")].select { |path| File.exist?(path) }

  # The size for plain Ruby.
  def ruby_size(size) = [self.class.sizes.fetch(:ruby, size), size].min

  # @return [Columns] what all versions are given, made of random numbers
  def input(_size, _random) = raise(NotImplementedError)

  # What #compute is given, made anew for each run where it is changed.
  def state(input) = input

  # Whether runs change the state, so that each needs its own.
  def changes? = false

  # @return [Hash{Symbol => Array}] outputs of a version in Ruby: of what #compute gave and what it was given
  def outputs(_state, _result) = raise(NotImplementedError)

  # Elements that the size means, for the scale of a picture.
  def elements(size) = size

  # Floating-point operations (for programs on Integers: operations) of one run, and the least number of bytes it moves to and from memory, whatever computes it.
  def work(_input, _outputs) = raise(NotImplementedError)

  # How many times as much work one size is as another, for scaling plain Ruby up: by the operations.
  def ratio(size, small) = (size / small.to_f)

  # What the project promises: of Ikra's kernels against those by hand with the same arithmetic, of the CPU's against plain Ruby, for each core (per_core:), and at
  # the normal size how many milliseconds a kernel takes at most, and what is beside it in a call (ms: { cuda: { kernel: 2, beside: 50 } }).
  def targets = { cpu: 0.9, cuda: 0.95 }

  # How far from the expected one a number may be, relative to it, and why; nil where the bits must be the same.
  def tolerance = nil

  # The same for versions in Python, whose compilers may contract, vectorise, or order operations differently.
  def loose_tolerance = [1e-9, "compilers of the libraries contract multiplications and additions, and combine in other orders"]

  # Why these outputs are not what is expected; nil where they are. For chaotic programs a subclass says what else counts as equal.
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
