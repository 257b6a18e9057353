# frozen_string_literal: true

# MapReduce from Ruby to Ruby, in warm calls. First the programs of the paper of 2011, at its sizes: Ikra compared with
# Ruby, with the paper's own design (mapreduce/soren.cu), with Mars (mars.cu), with CUDA, C and OpenMP by hand, and with
# Python's libraries. Then engines, overflows and kinds of values against each other, and Ikra with Ruby's loops.
#
# A kernel's time is Ikra's phase `kernel`, and that of events for CUDA. The whole time is from a text in memory to the
# result: a Hash in Ruby, arrays in C. Texts for CUDA by hand, Mars and Soren lie in page-locked memory.
# Not measured: loading Ruby and Ikra, and compiling. What is not installed is left out, and so is what a spent BUDGET
# does not reach. No baseline is timed if its result is not Ikra's.
#
#   ruby -Ilib benchmark/mapreduce.rb      # PROGRAMS=words,pages BUDGET=150 ELEMENTS=1000000 in the environment;
#                                          # IKRA_BENCH_BACKENDS=cpu,cuda

require "ikra"
require "json"
require "tmpdir"
require_relative "harness"
require_relative "mapreduce/inputs"

# The programs, in Ikra and in Ruby. `ways` are an engine, and options of calls.
module MapReducePrograms
  module_function

  def words(text, ways = {}, **options)
    return Ikra.lines(text: text, **options).flat_map(&:split).tally if ways.empty?

    Ikra.lines(text: text, **options).map_reduce(:+, **ways) { |line, out| line.split.each { |word| out.emit(word, 1) } }
  end

  def words_in_ruby(text) = text.split.tally

  def histogram(bytes, ways = {}, **options)
    Ikra.bytes(nil, 3, text: bytes, **options).map_reduce(:+, order: :key, **ways) do |(red, green, blue), out|
      out.emit(red, 1)
      out.emit(256 + green, 1)
      out.emit(512 + blue, 1)
    end
  end

  def histogram_in_ruby(bytes)
    counts = Hash.new(0)
    bytes.each_byte.each_slice(3) do |red, green, blue|
      counts[red] += 1
      counts[256 + green] += 1
      counts[512 + blue] += 1
    end
    counts.sort.to_h
  end

  # Lines are "URL IP COOKIE". First the different [URL, IP], then these by URL.
  def pages(text, ways = {}, **options)
    visits = Ikra.lines(text: text, **options).map_reduce(:+, lazy: true, **ways) do |line, out|
      fields = line.split
      out.emit([fields[0], fields[1]], 1)
    end
    visits.map_reduce(:+, **options) { |((url, _ip), _count), out| out.emit(url, 1) }
  end

  def pages_in_ruby(text) = text.each_line.map { |line| line.split.first(2) }.uniq.map(&:first).tally

  def grep(text, ways = {}, files: nil, **options)
    Ikra.lines(files, text: text, **options).map_reduce(:+, **ways) { |line, out| out.emit(line[/^\S+/], 1) if line.match?(/ 5\d\d /) }
  end

  def grep_in_ruby(text) = text.each_line.filter_map { |line| line[/^\S+/] if line.match?(/ 5\d\d /) }.tally

  # The product of two matrices in one list, as pairs of a place and a number. There is nothing to reduce.
  def matrix(list, size, **options)
    half = size * size
    (0...half).pmap_reduce(**options) do |place, out|
      y, x = place.divmod(size)
      sum = 0.0
      k = 0
      while k < size
        sum += list[y * size + k] * list[half + k * size + x]
        k += 1
      end
      out.emit([y, x], sum)
    end
  end

  # The same by pmap.
  def product(list, size, **options)
    half = size * size
    (0...half).pmap(**options) do |place|
      y, x = place.divmod(size)
      sum = 0.0
      k = 0
      while k < size
        sum += list[y * size + k] * list[half + k * size + x]
        k += 1
      end
      sum
    end
  end
end

# The programs with which Ikra is compared: how each is built and called.
class MapReduceBaselines
  FOLDER = File.expand_path("mapreduce", __dir__)
  BUILT = File.expand_path("../tmp/benchmark/mapreduce", __dir__)
  COMMON = %w[common.h common.cuh].map { |file| File.join(FOLDER, file) }
  C = %w[gcc -O3 -march=native -fopenmp -std=gnu11].freeze
  CUDA = %w[nvcc -O3 -std=c++17 --fmad=false -arch=native].freeze
  SOURCES = { "C with OpenMP" => "by_hand.c", "CUDA by hand" => "by_hand.cu", "Mars" => "mars.cu", "Soren" => "soren.cu" }.freeze
  PYTHON = { "Counter" => "counter", "Polars" => "polars", "DuckDB" => "duckdb", "CuPy" => "cupy" }.freeze

  def initialize(bench)
    @bench = bench
    @built = {}
    @slow = []
    # Compilers run beside the work of this process, until a program is needed.
    @building = SOURCES.map { |name, file| [name, Thread.new { build(file) }] }.to_h
  end

  # Waits for the compilers, which would disturb what is timed.
  def wait = @building.each_value(&:join)

  # The most seconds that a program may take.
  LIMIT = 15
  LIMITED = 124

  # What a program prints: milliseconds of runs and the checksum. nil where it is missing, fails or takes too long. Then
  # it does not run for more input.
  #
  # @return [Hash{Symbol => Object}, nil]
  def run(name, kind, path, runs)
    return if @slow.include?([name, kind])

    command = command(name) or return
    command = ["timeout", LIMIT.to_s, *command] if @bench.tool?("timeout")
    output = IO.popen({ "OMP_NUM_THREADS" => @bench.cpus.size.to_s }, [*command, kind.to_s, path, runs.to_s], &:read)
    unless $?.success?
      @slow << [name, kind] if $?.exitstatus == LIMITED
      @bench.note("#{name} #{$?.exitstatus == LIMITED ? "took more than #{LIMIT} s" : "failed"}: #{kind} was not measured")
      return
    end
    found = JSON.parse(output.lines.last, symbolize_names: true)
    return found unless found[:missing]

    @missing ||= {}
    @bench.note("left out: #{found[:missing]}") unless @missing[found[:missing]]
    @missing[found[:missing]] = true
    nil
  end

  private

  def build(file)
    built = File.join(BUILT, file.tr(".", "_"))
    source = File.join(FOLDER, file)
    command = file.end_with?(".c") ? C : CUDA
    return if command == CUDA && !@bench.gpu?

    built if @bench.build(built, [source, *COMMON], *command, source, "-o", built)
  rescue SystemExit
    nil
  end

  def command(name)
    return python(PYTHON.fetch(name)) if PYTHON.key?(name)

    unless @built.key?(name)
      path = @building.fetch(name).value
      @bench.note("#{name} was not built, and is left out") unless path
      @built[name] = path && [path]
    end
    @built[name]
  end

  def python(library)
    return unless @bench.python
    return if library == "cupy" && !@bench.gpu?

    [@bench.python, File.join(FOLDER, "peers.py"), library]
  end
end

class MapReduceBenchmark
  Order = Struct.new(:city, :price)

  # Megabytes of texts, and rows of matrices: the paper's sizes.
  SIZES = {
    normal: { words: [10, 50, 100], histogram: [3, 6, 10], pages: [5, 40, 65], grep: [10, 50, 100], matrix: [500, 1000, 2000] },
    small: { words: [10], histogram: [3], pages: [5], grep: [10], matrix: [200] },
    tiny: { words: [0.02], histogram: [0.01], pages: [0.02], grep: [0.02], matrix: [12] }
  }.freeze
  # Megabytes of a part of the library's text, and of texts for engines.
  LIBRARY = { normal: 20, small: 5, tiny: 0.02 }.freeze
  ENGINES = { normal: 2, small: 1, tiny: 0.01 }.freeze
  INPUTS = { words: :words, histogram: :pixels, pages: :pages, grep: :logs }.freeze
  # What each program is compared with. Libraries of Python come last.
  PEERS = {
    words: ["C with OpenMP", "CUDA by hand", "Mars", "Soren", "Counter", "Polars", "DuckDB"],
    histogram: ["C with OpenMP", "CUDA by hand", "Mars", "Soren", "Counter", "CuPy"],
    pages: ["C with OpenMP", "CUDA by hand", "Mars", "Soren", "Counter"],
    grep: ["C with OpenMP", "CUDA by hand", "Mars", "Soren", "Counter"]
  }.freeze
  ON_GPU = ["CUDA by hand", "Mars", "Soren", "CuPy"].freeze
  # Least ratios of Mars's kernels to Ikra's.
  FASTER_THAN_MARS = { words: 5, histogram: 1, pages: 1.5, grep: 1.5 }.freeze
  # Largest ratios of kernels to those by hand.
  BY_HAND = { words: 1.0, histogram: 1.3 }.freeze

  # Timings of one kind of work: of its kernels, and from the input to the result.
  Measured = Struct.new(:kernel, :total, :value)

  def initialize
    @bench = Harness.new("mapreduce", small: true)
    @count = @bench.size(:elements, 1_000_000, tiny: 500)
    @programs = Harness.chosen("PROGRAMS", %w[words histogram pages grep matrix library whole files sums kinds overflow engines loops]).map(&:to_sym)
    @baselines = MapReduceBaselines.new(@bench)
    @runs = @bench.tiny? ? 1 : 5
    @failed = []
  end

  def run
    Dir.mktmpdir do |folder|
      @folder = folder
      # What is promised comes first.
      programs(&:last)
      part(:whole) { @bench.backends.each { |backend| whole(backend) } }
      part(:files) { @bench.backends.each { |backend| files(backend) } }
      part(:sums) { @bench.backends.each { |backend| sums_of_floats(backend) } }
      part(:kinds) { @bench.backends.each { |backend| kinds(backend) } }
      part(:overflow) { @bench.backends.each { |backend| overflow(backend) } }
      part(:engines) { @bench.backends.each { |backend| engines(backend) } }
      part(:library) { library }
      programs { |sizes| sizes[0...-1] }
      part(:loops) { loops }
    end
    @bench.finish
    abort "mapreduce: #{@failed.join(", ")} failed" unless @failed.empty?
  end

  private

  # One of the parts. If it fails, the others are still measured.
  def part(name, title = name)
    return unless @programs.include?(name)
    return @bench.note("the budget is spent: #{title} was not measured") if @bench.spent?

    yield
  rescue StandardError => e
    @failed << title
    @bench.note("#{title} failed: #{e.class}, #{e.message.lines.first&.chomp} (#{e.backtrace.first})")
  end

  # Each program at some of its sizes.
  def programs(&some)
    SIZES[@bench.scale].each do |kind, sizes|
      [*some.call(sizes)].each { |size| part(kind, "#{kind} of #{size}") { kind == :matrix ? matrix(size) : text_program(kind, size) } }
    end
  end

  # The largest input of a program.
  def input(kind)
    @inputs ||= {}
    @inputs[kind] ||= Inputs.public_send(INPUTS.fetch(kind), megabytes(SIZES[@bench.scale][kind].last))
  end

  def megabytes(number) = (number * 1_000_000).to_i

  # One of the programs of texts. Smaller inputs are the beginning of the largest one.
  def text_program(kind, size)
    all = input(kind)
    text = kind == :histogram ? all.byteslice(0, megabytes(size) / 3 * 3) : Inputs.cut(all, megabytes(size))
    targets(kind, size, measure_text(kind, "#{kind} #{size} MB", text, size == SIZES[@bench.scale][kind].last))
  end

  # Measures a program over a text in Ruby, in Ikra and in baselines.
  #
  # @param all [Boolean] whether to measure libraries of Python, too
  # @return [Hash{String, Symbol => Measured}]
  def measure_text(kind, name, text, all)
    @baselines.wait
    began = clock
    expected = MapReducePrograms.public_send("#{kind}_in_ruby", text)
    seconds = clock - began
    @bench.incomparable("#{name}: Ruby", "it is what the others are compared with")
    found = { "Ruby" => Measured.new(nil, @bench.timed("#{name}: Ruby", [seconds]), expected) }
    @words_of_book = expected if kind == :words && all
    @bench.backends.each { |backend| found[backend] = ikra("#{name}: #{backend}", expected.to_a, part: :to_a.to_proc) { MapReducePrograms.public_send(kind, text, backend: backend) } }
    checksum = Inputs.checksum(expected)
    path = File.join(@folder, "input")
    File.binwrite(path, text)
    peers = all ? PEERS.fetch(kind) : PEERS.fetch(kind).first(4)
    peers.each { |peer| found[peer] = baseline(peer, name, kind, path, checksum) }
    found.compact
  end

  # Median times of warm calls, whose result must be the expected one. `part` is what of the result is compared.
  def ikra(name, expected, runs: @runs, part: ->(value) { value })
    @baselines.wait
    value = yield
    @bench.same(name, expected, part.(value))
    yield unless @bench.tiny?
    profiles = []
    while profiles.size < runs
      GC.start
      profiles << Ikra.profile { yield }
      # Slow calls are not repeated.
      break if profiles.sum(&:seconds) > 3
    end
    kernels = @bench.timed("#{name}: kernels", profiles.map { |profile| profile.phases[:kernel] || 0.0 })
    totals = @bench.timed("#{name}: whole", profiles.map(&:seconds))
    @bench.record(:phases, name, profiles.last.phases.compact)
    Measured.new(kernels, totals, value)
  end

  def baseline(peer, name, kind, path, checksum)
    return if ON_GPU.include?(peer) && !@bench.gpu?

    slow = ["Counter", "Soren"].include?(peer)
    found = @baselines.run(peer, kind, path, slow || @bench.tiny? ? 1 : @runs) or return
    name = "#{name}: #{peer}"
    return @bench.note("#{name} has another result, and was not timed") unless found.slice(*checksum.keys) == checksum

    @bench.same(name, checksum, found.slice(*checksum.keys))
    @bench.record(:phases, name, found[:phases].transform_values { |milliseconds| milliseconds / 1e3 }) if found[:phases]
    @bench.record(:baselines, name, found.slice(:engine, :overflows, :threads, :version))
    kernels = @bench.timed("#{name}: kernels", seconds_of(found[:kernel])) if found[:kernel]
    Measured.new(kernels, @bench.timed("#{name}: whole", seconds_of(found[:total])))
  end

  def seconds_of(milliseconds) = milliseconds.map { |each| each / 1e3 }

  # How often Ikra's kernels, or its whole calls, are as fast as those of others; and what is promised of that.
  def targets(kind, size, found)
    last = size == SIZES[@bench.scale][kind].last
    name = "#{kind} #{size} MB"
    if (cuda = found[:cuda])
      ratio = ->(peer) { found[peer] && found[peer].kernel.median / cuda.kernel.median }
      if (by_hand = ratio.("CUDA by hand"))
        at_most = BY_HAND[kind] if last
        report(at_most, "#{name}, kernels: cuda against CUDA by hand", 1 / by_hand, at_most: at_most)
      end
      report(true, "#{name}, kernels: Mars against cuda", ratio.("Mars"), at_least: last ? FASTER_THAN_MARS.fetch(kind) : 1)
      report(true, "#{name}, kernels: Soren against cuda", ratio.("Soren"), at_least: 1)
      report(false, "#{name}, kernels: CuPy against cuda", ratio.("CuPy"))
      report(kind == :words && last, "#{name}, whole: Ruby against cuda", found["Ruby"].total.median / cuda.total.median, at_least: 17)
    end
    return unless (cpu = found[:cpu])

    ["Ruby", "C with OpenMP", "Counter", "Polars", "DuckDB"].each do |peer|
      promised = kind == :words && last && ["C with OpenMP", "Polars", "DuckDB"].include?(peer)
      report(promised, "#{name}, whole: #{peer} against cpu", found[peer] && found[peer].total.median / cpu.total.median, at_least: 1)
    end
  end

  # A ratio, where there is one, and whether it is promised.
  def report(promised, name, ratio, unit: "×", **bounds)
    return unless ratio

    @bench.target(name, ratio, unit: unit, **bounds) if promised
    @bench.value(name, ratio, unit)
  end

  # The matrix product in pairs, compared with pmap, and with CUDA and frameworks.
  def matrix(size)
    list = Inputs.matrices(size)
    name = "matrix #{size}"
    path = File.join(@folder, "input")
    File.binwrite(path, list.pack("d*"))
    row = Array.new(size) { |x| (0...size).inject(0.0) { |sum, k| sum + list[k] * list[size * size + k * size + x] } }
    found = @bench.backends.to_h do |backend|
      next [backend, nil] if backend == :cpu && size > 1000

      pmap = ikra("#{name}: #{backend}, pmap", row, runs: 3, part: ->(value) { value.first(size) }) { MapReducePrograms.product(list, size, backend: backend) }
      expected = pmap.value.each_with_index.map { |number, place| [place.divmod(size), number] }
      pairs = ikra("#{name}: #{backend}", expected, runs: 3) { MapReducePrograms.matrix(list, size, backend: backend) }
      report(backend == :cuda && size >= 2000, "#{name}, kernels: #{backend} against pmap", against(pairs, pmap), at_most: 1.02)
      [backend, [pairs, pmap.value]]
    end
    measured, product = found[:cuda] || found.values.compact.first
    return unless measured

    checksum = { keys: size * size, sum: 0, hash: format("%016x", Zlib.crc32(product.pack("d*"))) }
    ["CUDA by hand", "Mars", "Soren"].each do |peer|
      other = baseline(peer, name, :matrix, path, checksum) or next
      last = size == SIZES[@bench.scale][:matrix].last
      report(last, "#{name}, kernels: #{peer} against cuda", other.kernel.median / measured.kernel.median, at_least: peer == "CUDA by hand" ? 0.95 : 1) if found[:cuda]
    end
  end

  # The ratio of two kernels' times. Those of tiny sizes may be nothing.
  def against(one, other) = one.kernel.median / [other.kernel.median, 1e-9].max

  # The words of Ruby's own library.
  def library
    text = Inputs.library(megabytes(LIBRARY[@bench.scale])) or return @bench.note("Ruby's library is not here, and its words were not counted")
    name = "words of the library, #{LIBRARY[@bench.scale]} MB"
    found = measure_text(:words, name, text, false)
    found.except("Ruby").each { |peer, measured| report(false, "#{name}, whole: Ruby against #{peer}", found["Ruby"].total.median / measured.total.median) }
  end

  # From a String to the most frequent words, and the same text as one line.
  def whole(backend)
    text = input(:words)
    size = SIZES[@bench.scale][:words].last
    counts = @words_of_book || MapReducePrograms.words_in_ruby(text)
    expected = counts.each_with_index.min_by(10) { |(_word, count), index| [-count, index] }.map(&:first)
    name = "words #{size} MB, top(10): #{backend}"
    top = ikra(name, expected) { Ikra.lines(text: text, backend: backend).flat_map(&:split).map_reduce(:+, lazy: true) { |word, out| out.emit(word, 1) }.top(10) }
    report(backend == :cuda, "#{name}, whole", top.total.median * 1e3, unit: "ms", at_most: 15)
    one_line(backend, text, size, counts)
  end

  # Bytes of a text that tell what a text as one line would take, and the most seconds that it may take.
  TRIED = 1_000_000
  PATIENCE = 3

  def one_line(backend, text, size, counts)
    some = Inputs.cut(text, TRIED)
    ratio, seconds = one_line_of(backend, some, "words #{some.bytesize} bytes", MapReducePrograms.words_in_ruby(some))
    if seconds * text.bytesize / some.bytesize > PATIENCE
      @bench.note("words #{size} MB as one line: #{backend} would take too long, so #{some.bytesize} bytes were compared")
    elsif !text.equal?(some)
      ratio, = one_line_of(backend, text, "words #{size} MB", counts)
    end
    report(backend == :cuda, "words, kernels: #{backend}, one line against lines", ratio, at_most: 1.3)
  end

  # The ratio of kernels' times, and the seconds of a call.
  def one_line_of(backend, text, name, expected)
    joined = Inputs.one_line(text)
    one = ikra("#{name}, one line: #{backend}", expected, runs: 3) { MapReducePrograms.words(joined, backend: backend) }
    lines = ikra("#{name}, lines: #{backend}", expected, runs: 3) { MapReducePrograms.words(text, backend: backend) }
    [against(one, lines), one.total.median]
  end

  FILES = 100

  # The lines of many files, which are in the page cache, against those of a text.
  def files(backend)
    text = input(:grep)
    size = SIZES[@bench.scale][:grep].last
    lines = text.lines
    paths = lines.each_slice(lines.size / FILES + 1).with_index.map { |some, i| File.join(@folder, "#{i}.log").tap { |path| File.write(path, some.join) } }
    expected = MapReducePrograms.grep_in_ruby(text).to_a
    name = "grep #{size} MB"
    memory = ikra("#{name} in memory: #{backend}", expected, runs: 3, part: :to_a.to_proc) { MapReducePrograms.grep(text, backend: backend) }
    stored = ikra("#{name} in #{FILES} files: #{backend}", expected, runs: 3, part: :to_a.to_proc) { MapReducePrograms.grep(nil, files: paths, backend: backend) }
    report(false, "#{name}, whole: #{backend}, #{FILES} files against memory", stored.total.median / memory.total.median)
  end

  # Sums of Floats against those of Integers.
  def sums_of_floats(backend)
    numbers = Array.new(@count) { |i| (i * 7919) % 1009 }
    expected = numbers.tally
    integers = ikra("sums of Integers: #{backend}", expected.to_h { |x, times| [x, (x + 1) * times] }) { numbers.pmap_reduce(:+, backend: backend) { |x, out| out.emit(x, x + 1) } }
    floats = ikra("sums of Floats: #{backend}", expected.to_h { |x, times| [x, x * 0.5 * times] }) { numbers.pmap_reduce(:+, backend: backend) { |x, out| out.emit(x, x * 0.5) } }
    report(backend == :cuda, "sums, kernels: #{backend}, Floats against Integers", against(floats, integers), at_most: 2)
  end

  # Numbers of keys, each against one more.
  KINDS = [1000, 4096, 65_536].freeze

  # Shares of keys like those of words against equal ones, and one key more.
  def kinds(backend)
    random = Random.new(7)
    even = counted("999 keys, even: #{backend}", Array.new(@count) { 1 + random.rand(999) }, backend)
    zipf = counted("999 keys, Zipf: #{backend}", Array.new(@count) { Inputs.rank(random.rand(Inputs::PLACES), 1000, Inputs::PLACES) }, backend)
    report(backend == :cuda, "kernels: #{backend}, Zipf against even", against(zipf, even), at_most: 1.1)
    KINDS.each do |kinds|
      some, more = [kinds, kinds + 1].map { |number| counted("#{number} keys: #{backend}", Array.new(@count) { |i| i * 7919 % number }, backend) }
      report(backend == :cuda, "kernels: #{backend}, #{kinds + 1} keys against #{kinds}", against(more, some), at_most: 1.15)
    end
  end

  def counted(name, numbers, backend) = ikra(name, numbers.tally) { numbers.pmap_reduce(:+, backend: backend) { |x, out| out.emit(x, 1) } }

  # Keys that come late, from elements with four pairs, against the same pairs evenly from elements with one.
  def overflow(backend)
    late = @count / 5
    evenly = Array.new(@count / 4 * 4) { |i| i }.shuffle(random: Random.new(5))
    sorted = Array.new(@count / 4) { |i| 4 * i }
    expected = evenly.map { |x| x < late ? 0 : x }.tally
    none = ikra("no overflow: #{backend}", expected) { evenly.pmap_reduce(:+, backend: backend) { |x, out| out.emit(x < late ? 0 : x, 1) } }
    one = ikra("overflow: #{backend}", expected) do
      sorted.pmap_reduce(:+, backend: backend) do |x, out|
        out.emit(x < late ? 0 : x, 1)
        out.emit(x + 1 < late ? 0 : x + 1, 1)
        out.emit(x + 2 < late ? 0 : x + 2, 1)
        out.emit(x + 3 < late ? 0 : x + 3, 1)
      end
    end
    report(backend == :cuda, "kernels: #{backend}, overflow against none", against(one, none), at_most: 1.6)
  end

  # Each program with each engine forced, against Ikra's own choice.
  def engines(backend)
    INPUTS.each_key do |kind|
      return @bench.note("the budget is spent: engines of #{kind} were not compared") if @bench.spent?

      size = megabytes(ENGINES[@bench.scale])
      text = kind == :histogram ? input(kind).byteslice(0, size / 3 * 3) : Inputs.cut(input(kind), size)
      name = "engines of #{kind}: #{backend}"
      expected = MapReducePrograms.public_send("#{kind}_in_ruby", text)
      forced = %i[direct small hash group sort].to_h { |engine| [engine, forced("#{name}, #{engine}", expected, kind, text, engine, backend)] }.compact
      chosen = forced("#{name}, chosen", expected, kind, text, nil, backend)
      next if forced.empty?

      best, seconds = forced.transform_values { |measured| measured.total.median }.min_by(&:last)
      report(!@bench.tiny?, "#{name}: the choice against #{best}", chosen.total.median / seconds, at_most: 1.05)
    end
  end

  # nil where the engine is not for the program.
  def forced(name, expected, kind, text, engine, backend)
    ikra(name, expected.to_a, runs: 3, part: :to_a.to_proc) { MapReducePrograms.public_send(kind, text, { engine: engine }, backend: backend) }
  rescue ArgumentError, Ikra::CompileError => e
    @bench.note("#{name}: #{e.message.lines.first.chomp}")
    nil
  end

  # Short programs, compared with loops of Ruby.
  def loops
    make_lists
    compare("integers", -> { sums { |add| @integers.each { |x| add.(x, 1) } } }) do |options|
      @integers.pmap_reduce(:+, **options) { |x, out| out.emit(x, 1) }
    end
    compare("distinct integers", -> { sums { |add| @distinct.each { |x| add.(x, 1) } } }) do |options|
      @distinct.pmap_reduce(:+, **options) { |x, out| out.emit(x, 1) }
    end
    compare("words", -> { sums { |add| @words.each { |word| add.(word, 1) } } }) do |options|
      @words.pmap_reduce(:+, **options) { |word, out| out.emit(word, 1) }
    end
    compare("tally of integers", -> { @integers.tally }) { |options| @integers.ptally(**options) }
    compare("tally of words", -> { @words.tally }) { |options| @words.ptally(**options) }
    compare("greatest price", -> { @orders.each_with_object({}) { |o, found| found[o.city] = [found[o.city], o.price].compact.max } }) do |options|
      @orders.pmap_reduce(:max, **options) { |o, out| out.emit(o.city, o.price) }
    end
    compare("average price", -> { @orders.group_by(&:city).transform_values { |list| list.sum(&:price) / list.size } }) do |options|
      @orders.pmap_reduce(reduce: ->(_city, prices) { prices.sum / prices.size }, **options) { |o, out| out.emit(o.city, o.price) }
    end
    compare("addresses of lines", -> { @text.each_line.map { |line| line[0, 8] }.tally }) do |options|
      (@lines ||= {})[options] ||= Ikra.lines(text: @text, **options)
      @lines[options].map { |line| line[0, 8] }.tally
    end
    compare("histogram of bytes", -> { @pixels.each_byte.each_slice(3).with_object(Hash.new(0)) { |(r, g, b), found| found[r] += 1; found[256 + g.to_i] += 1; found[512 + b.to_i] += 1 } }) do |options|
      (@bytes ||= {})[options] ||= Ikra.bytes(nil, 3, text: @pixels, **options)
      @bytes[options].map_reduce(:+) do |slice, out|
        out.emit(slice[0], 1)
        out.emit(256 + slice[1].to_i, 1)
        out.emit(512 + slice[2].to_i, 1)
      end
    end
  end

  def make_lists
    @integers = Array.new(@count) { |i| (i * 7919) % 1009 }
    @distinct = Array.new(@count) { |i| (i * 7919) % 1_000_003 }
    @orders = Array.new(@count) { |i| Order.new("city #{i * 31 % 97}", i % 1000 / 8.0) }
    @words = Array.new(@count) { |i| "word #{i * 7919 % 20_011}" }
    @text = Array.new(@count) { |i| "10.0.#{i % 256}.#{i * 7 % 251} GET /#{i * 31 % 4001}\n" }.join
    @pixels = Array.new(@count) { |i| i * 7919 % 251 }.pack("C*")
  end

  def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def sums
    found = Hash.new(0)
    yield(->(key, value) { found[key] += value })
    found
  end

  # Compares a loop of Ruby with Ikra's call.
  def compare(name, ruby)
    expected = ruby.call
    @bench.incomparable("#{name}: Ruby", "it is what the others are compared with")
    alone = @bench.time("#{name}: Ruby", runs: 3) { ruby.call }
    @bench.backends.each do |backend|
      options = { backend: backend }
      @bench.same("#{name}: #{backend}", expected.to_a.flatten, yield(options).to_a.flatten)
      timing = @bench.time("#{name}: #{backend}", runs: 3) { yield(options) }
      @bench.value("#{name}: #{backend} against Ruby", alone.median / timing.median, "×")
    end
  end
end

MapReduceBenchmark.new.run if $PROGRAM_NAME == __FILE__
