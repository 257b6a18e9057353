# frozen_string_literal: true

# Calls every native with arguments that it cannot take. For `natives_spec.rb`, which runs it in a process of its own.
#
# The natives are all of Ikra and Ikra::Buffer, so a new one is included by itself. Arguments of Ikra's own calls are
# recorded while some operations run. Then one or more of them are replaced, so that the others pass the native's first
# checks. A native that was not recorded gets only combinations of nonsense. Each native has a process of its own.
# Arguments: how many calls of each, the seed, and names of natives (all).
require "set"
require "tempfile"

module Nonsense
  class Point
    attr_accessor :x, :list

    def initialize(x) = (@x, @list = x, [x])
  end

  NATIVES = Ikra.singleton_methods(false).grep(/\A__/).filter_map { |name| Ikra.method(name) if Ikra.method(name).source_location.nil? } +
            Ikra::Buffer.singleton_methods(false).map { |name| Ikra::Buffer.method(name) } +
            Ikra::Buffer.instance_methods(false).map { |name| Ikra::Buffer.instance_method(name) }

  NATIVES.freeze

  module_function

  def title(native)
    "#{native.owner.inspect[/Buffer/]}#{native.is_a?(Method) ? "." : "#"}#{native.name}"
  end

  # For each native, lists of arguments with the receiver first.
  def recorded = @recorded ||= Hash.new { |all, native| all[native] = {} }

  def record
    { Ikra.singleton_class => NATIVES.select { |native| native.is_a?(Method) && native.receiver.equal?(Ikra) },
      Ikra::Buffer.singleton_class => NATIVES.select { |native| native.is_a?(Method) && native.receiver.equal?(Ikra::Buffer) },
      Ikra::Buffer => NATIVES.grep(UnboundMethod) }.each do |owner, natives|
      owner.prepend(Module.new do
        natives.each do |native|
          define_method(native.name) do |*arguments|
            Nonsense.keep(title = native, [self, *arguments])
            native = title
            native.is_a?(Method) ? native.call(*arguments) : native.bind_call(self, *arguments)
          end
        end
      end)
    end
  end

  # One list of each combination of classes.
  def keep(native, list)
    kinds = recorded[native]
    kinds[list.map(&:class)] ||= list if kinds.size < 12
  end

  def works?
    points = Array.new(10) { |i| Point.new(i) }
    points.peach(backend: :cpu) { |point| point.x += point.list[0] }
    array = Ikra::MDArray.new([3, 1, 2])
    points.map(&:x) == (0...20).step(2).to_a && [1, 2, 3].pmap(backend: :cpu) { |x| x + 1 } == [2, 3, 4] &&
      array.sort.to_a == [1, 2, 3] && (array * 2).sum == 12 && [3, 1, 2].psort_by(backend: :cpu) { |x| -x } == [3, 2, 1]
  end

  # Prepares the fast path of later calls of the same block in the same process.
  def warm_up(list) = 3.times { Ikra::MDArray.new(list).map { |x| x + 1 }.to_a }

  def views(array)
    matrix = array[0...100].reshape(10, 10)
    [matrix.dot(matrix).to_a, matrix.transpose.dup, matrix[1..2, 3..4].dup, matrix[1].to_a, Ikra::MDArray.new(array.to_a)]
    matrix[1..2, 3..4] = matrix[3..4, 1..2]
    matrix[1..2] = 7
    copy = matrix.dup
    copy.map! { |x| x + 1 }
    pending = matrix + copy
    matrix.map! { |x| x * 2 }
    [pending.to_a, pending.dup, (pending + 1).sum, matrix == copy, matrix.inspect]
  end

  # Runs each operation at least once, with so many elements that natives work apart from the Ruby thread.
  def operate
    works?
    numbers = Array.new(20_000) { |i| (i * 7919) % 1009 }
    floats = numbers.map(&:to_f)
    points = numbers.first(100).map { |i| Point.new(i) }
    [numbers, floats].each do |list|
      list.pmap { |x| x + 1 }
      list.pselect { |x| x > 100 }
      list.ppartition { |x| x > 100 }
      list.psort_by { |x| -x }
      list.pgroup_by { |x| x.to_i % 7 }
      list.puniq { |x| x.to_i % 7 }
      list.pmin_by { |x| -x }
      list.ptally
      list.puniq
      list.pscan(:+)
      list.pscan { |a, b| a + b }
      list.preduce(:+)
      list.preduce { |a, b| a + b }
      list.psort
      list.pminmax
      list.pfind { |x| x > 1000 }
      list.pfilter_map { |x| x if x > 100 }
      list.pflat_map { |x| [x, x] }
      list.pcount { |x| x > 3 }
      list.psum { |x| x }
      list.pall? { |x| x >= 0 }
      list.plazy.map { |x| x * 2 }.select { |x| x > 100 }.to_a
      list.plazy.map { |x| x * 2 }.sum
      array = Ikra::MDArray.new(list)
      warm_up(list)
      [array.sort, array.sum, array.min, array.max, array.minmax, array.cumsum, array[array > 100], array[1..9], array.to_a,
       (array + 1).to_a, array.reshape(100, 200).transpose.to_a, array.dup, array.to_s]
      array[0] = 4
      array[1..2] = array[3..4]
      array.map! { |x| x + 1 }
      Marshal.load(Marshal.dump(array))
      end
    Array.new(300) { |i| i.even? ? [i] : nil }.pscan { |a, b| a || b }
    (1..20_000).pfilter_map { |x| [x] if x > 100 }
    [3, 1, 2, nil].pmin_by { |x| x.to_i }
    [Point.new(2), Point.new(1)].psort { |a, b| a.x <=> b.x }
    [true, false, true].ptally
    Ikra::MDArray.new([true, false]).count(true)
    Ikra.resident(points) do
      points.peach { |point| point.x += 1 }
      points[3].x += 1
      points.peach { |point| point.x += 1 }
    end
    Ikra.profile { points.pmap(&:x) }
    Ikra.explain { points.pmap(&:x) }
    Ikra.srand(4)
    Ikra.memory
    GC.start
  end

  def table
    buffers = %i[i64 i32 u8 bool f64 f32].flat_map do |dtype|
      [0, 1, 7].map { |size| Ikra::Buffer.from_list(dtype, [dtype == :bool ? true : 1] * size) }
    end
    freed = Ikra::Buffer.from_list(:i64, [1, 2]).tap(&:free)
    array = Ikra::MDArray.new([[1, 2, 3], [4, 5, 6]])
    recursive = [1].tap { |list| list << list }
    [nil, true, false, 0, 1, -1, 2, 7, 2**32, 2**40, 2**62, 2**63 - 1, -2**63, 2**63, 2**64 - 1, 2**70, -2**70, 0.0, -1.5, Float::NAN, Float::INFINITY, 1i, 2r,
     "", "x", "i64", "\xff", :x, :+, :*, :sum, :min, :count, :map, :each, :i64, :f64, :bool, :cpu, :reference, [], [1], [1, nil], [0.5, 1], [nil] * 5,
     [true, false], ["a", "b"], [[1, 2], [3]], recursive, [2**70], (0..3).to_a, Array.new(100) { |i| i }, {}, { backend: :cpu }, { backend: :nonsense }, { x: 1 }, { "x" => 1 },
     Object.new, BasicObject.new, Class, Object, Ikra, Kernel, Comparable, 1..3, 1.., nil..nil, "a".."c", 1.5..2.5, Set[1], Struct.new(:a).new(1), Point.new(3),
     proc { |x| x }, lambda { |x| x }, proc { |*| }, :x.to_proc, method(:puts), Point.instance_method(:x), 1.method(:+), Thread.current, $stdout, Time.now, /x/,
     array, array.transpose, Ikra::MDArray.new([]), Ikra::MDArray.new([1.5]), array * 2, freed, *buffers]
  end

  # Whether an exception is one that a native may raise. It must not say that Ikra is at fault, or that a value lacks a
  # method.
  def plain?(error, native, arguments)
    return false if error.class.name == "fatal" || error.is_a?(Ikra::InternalError)
    return error.is_a?(StandardError) || error.is_a?(NoMemoryError) || error.is_a?(Ikra::Error) unless error.is_a?(NameError)

    # The block, the operator and the elements are the program's own.
    case native.name
    when :__section then arguments[5].is_a?(Proc)
    when :__running then arguments[0].is_a?(Array) && arguments[1].is_a?(Symbol)
    end
  end

  def call(native, receiver, arguments)
    native.is_a?(Method) ? native.call(*arguments) : native.bind_call(receiver, *arguments)
    nil
  rescue Exception => e # rubocop:disable Lint/RescueException -- a panic is one
    plain?(e, native, arguments) ? nil : e
  end

  def shown(value)
    case value
    when Ikra::Buffer then "Buffer(#{value.freed? ? "freed" : "#{value.dtype} #{value.size}"})"
    when Array, Hash, Ikra::MDArray then value.inspect[0, 60]
    when nil, true, false, Numeric, String, Symbol, Module, Range, Proc then value.inspect
    else "a #{Object.instance_method(:class).bind_call(value)}"
    end
  end

  def lists(native, count, random, table)
    arity = native.arity.negative? ? 2 : native.arity
    known = recorded[native].values
    pick = proc { table[random.rand(table.size)] }
    receiver = -> { table.grep(Ikra::Buffer).sample(random:) }
    wrong = (0..(arity + 2)).map { |given| [receiver.call, *Array.new(given, &pick)] }
    same = table.map { |value| [receiver.call, *[value] * arity] }
    # Each argument of the recorded ones in turn, and then several.
    single = known.flat_map { |list| (1...list.size).flat_map { |at| table.map { |value| list.dup.tap { |own| own[at] = value } } } }
    several = Array.new(count) do
      list = known.sample(random:)&.dup || [receiver.call, *Array.new(arity, &pick)]
      (1...list.size).each { |at| list[at] = pick.call if random.rand(2).zero? }
      list[0] = receiver.call if native.is_a?(UnboundMethod) && random.rand(2).zero?
      list
    end
    wrong + same + single.sample(4 * count, random:) + several
  end

  def probe(native, count, random, told)
    calls = lists(native, count, random, table)
    [[1, 2, 3], [1.5, 2.5]].each { |list| warm_up(list) }
    calls.each do |receiver, *arguments|
      text = "#{title(native)}(#{arguments.map { |value| shown(value) }.join(", ")})"
      told.truncate(0)
      told.pwrite(text, 0)
      error = call(native, receiver, arguments)
      puts "#{text}: #{error.class}: #{error.message}" if error
    end
    4.times { Ikra.__resident_close }
    puts "#{title(native)}: the process does not work any more" unless works?
    calls.size
  end

  # In a child: makes calls, and reports their number to the parent. A file has the call during which it ended.
  def probe_apart(native, count, seed, told)
    reader, writer = IO.pipe
    $stdout.flush
    child = fork do
      reader.close
      $stderr.reopen($stdout)
      writer.puts probe(native, count, Random.new(seed), told)
      $stdout.flush
      exit!(0)
    end
    writer.close
    killer = Thread.new { sleep(120) && Process.kill(:KILL, child) }
    calls = reader.read.to_i
    status = Process.wait2(child).last
    killer.kill
    puts "#{told.pread(10_000, 0)}: the process ended with #{status}" unless status.success?
    calls
  end

  def run(count, seed, names)
    record
    operate
    unknown = NATIVES.reject { |native| recorded.key?(native) }.map { |native| title(native) }
    warn "not recorded: #{unknown.join(" ")}" if $VERBOSE
    natives = NATIVES.select { |native| names.empty? || names.include?(title(native)) }
    calls = Tempfile.create { |told| natives.sum { |native| probe_apart(native, count, seed, told) } }
    puts "#{natives.size} natives, #{calls} calls"
  end
end

Nonsense.run(Integer(ARGV[0]), Integer(ARGV[1]), ARGV[2..])
