# frozen_string_literal: true

RSpec.describe "Ikra.explain" do
  it "prints what the README shows of it" do
    readme = File.read(File.expand_path("../../README.md", __dir__))
    program, shown = readme.match(/^\$ ruby -Ilib -rikra -e '\n(.*?)'\n(.*?)^…$/m).captures
    command = [RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", "-rikra", "-e", "\n#{program}"]
    expect(IO.popen({ "IKRA_BACKEND" => "cpu" }, command, &:read)).to start_with(shown)
  end

  # The subjects of the explanations.
  module Explained
    class Car
      attr_reader :speed

      def initialize(speed) = @speed = speed

      def move(weather)
        factor = weather == :rainy ? 0.8 : 1.0
        @speed *= factor
        nil
      end
    end

    class Bus < Car
      def move(weather)
        super
        @stops = (@stops || 0) + 1
      end
    end

    class Street
      attr_accessor :load, :next

      def initialize = @load = 0.0
      def push = @next.load = 1.0
    end
  end

  def cars = [Explained::Car.new(10.0), Explained::Bus.new(20.0), Explained::Car.new(30.0)]

  def section(&block) = Ikra.explain(&block).sections.first

  it "runs the block, gives its value, and tells of each section in order" do
    explanation = Ikra.explain do
      doubled = [1, 2].pmap { |x| x * 2 }
      (1..3).pmap { |x| x + doubled.size }
    end
    expect(explanation.value).to eq([3, 4, 5])
    expect(explanation.sections.map(&:line)).to eq([__LINE__ - 4, __LINE__ - 3])
    expect(explanation.sections.map(&:elements)).to eq([2, 3])
    expect(explanation.inspect).to include("pmap at #{__FILE__}:#{__LINE__ - 6}")
  end

  it "tells of Symbols, and of elements of an MDArray, at the line where they stand" do
    array = Ikra::MDArray[1, 2]
    line = __LINE__
    told = [section { [2**40].pmap(&:succ) },
            section { [0].pmap { |i|
              array[i] } }]
    expect(told.map { |section| section.checks.select(&:left?).map { |check| [check.path, check.line] }.uniq }).to eq([[[__FILE__, line + 1]], [[__FILE__, line + 3]]])
  end

  it "does to objects what the section does without it" do
    explained, plain = cars, cars
    Ikra.explain { explained.peach(3) { |car| car.move(:rainy) } }
    plain.peach(3) { |car| car.move(:rainy) }
    expect(explained.map(&:speed)).to eq(plain.map(&:speed))
  end

  it "knows the type of each variable at its line" do
    limit = 3
    told = section do
      [1, nil].pmap do |x|
        y = x ? x * limit : 0.5
        z = y
        z = nil if y > 1
        z
      end
    end
    first = told.line
    expect(told.source).to start_with("do |x|").and end_with("end")
    expect(told.types).to eq(
      first => { "x" => "Integer | nil" },
      first + 1 => { "limit" => "Integer", "x" => "Integer", "y" => "Integer | Float" },
      first + 2 => { "y" => "Integer | Float", "z" => "Integer | Float" },
      first + 3 => { "y" => "Integer | Float", "z" => "nil" },
      first + 4 => { "z" => "Integer | Float | nil" }
    )
    expect(told.result).to eq("Integer | Float | nil")
  end

  it "says how references are reached, and what is in arrays" do
    shared = Explained::Street.new
    table = [[1, 2.5], [3]]
    told = section do
      [Explained::Street.new].pmap do |street|
        list = table[0]
        street.load + shared.load + list[0]
      end
    end
    expect(told.types.values.reduce(:merge)).to include(
      "street" => "Explained::Street (owned)", "shared" => "Explained::Street (the same for all)", "list" => start_with("Array of (Integer | Float)")
    )
  end

  it "tells which methods were compiled, for which types, and what is in them" do
    told = section { cars.peach { |car| car.move(:rainy) } }
    own = told.specialisations.map { |body| [body.name, body.receiver, body.arguments, body.result] }
    expect(own).to contain_exactly(
      ["Explained::Car#move", "Explained::Car (owned)", { "weather" => "Symbol" }, "nil"],
      ["Explained::Car#move", "Explained::Bus (owned)", { "weather" => "Symbol" }, "nil"],
      ["Explained::Bus#move", "Explained::Bus (owned)", { "weather" => "Symbol" }, "nil"]
    )
    move = told.specialisations.find { |body| body.name == "Explained::Car#move" }
    expect(move.types[move.line + 1]).to eq("factor" => "Float", "weather" => "Symbol")
    expect(move.types[move.line + 2]).to include("factor" => "Float")
    expect(told.jobs).to include("by class")
  end

  it "leaves out what was specialised on the way to the types, and marks Ruby's own methods" do
    told = section { [3].pmap { |x| (1..x).inject { |a, b| a + b } } }
    expect(told.specialisations.map(&:name)).to include("Range#inject")
    expect(told.specialisations).to all(have_attributes(library: true, types: {}))
    expect(told.to_s).to match(/of Ruby's own: .*Range#inject/)
    expect(section { ["ab"].pmap { |text| text.chars.size } }.to_s).not_to include("__")
  end

  it "lists columns with their storage, their rows and their use" do
    told = section { cars.peach { |car| car.move(:rainy) } }
    columns = told.columns.to_h { |column| [column.name, column] }
    expect(columns.fetch("Explained::Car@speed").to_h).to include(storage: "f64", rows: "Explained::Car, Explained::Bus", read: true, written: true)
    expect(columns.fetch("Explained::Bus@stops").to_h).to include(storage: "i64", rows: "Explained::Bus")
    expect(columns.fetch("Explained::Bus@stops.tag").storage).to eq("u8")
    expect(columns.fetch("element").to_h).to include(storage: "u32", rows: "each element", read: true, written: false)
    expect(columns.values.map(&:layout)).to all(match(/\Aarray, \d bytes? a row\z/))
  end

  it "counts checks that were lowered, and those that are left" do
    divisor = 3
    told = section do
      [1, 2].pmap do |x|
        a = x % 10 + 1
        b = x / divisor
        a + b + x.abs
      end
    end
    at = ->(line, what) { told.checks.find { |check| check.line == told.line + line && check.what == what } }
    expect(at[1, "Integer + beyond 64 bits"]).to have_attributes(kind: :overflow, lowered: 1, left: 0, left?: false)
    expect(at[2, "ZeroDivisionError"]).to have_attributes(kind: :exception, lowered: 1, left: 1, left?: true, path: __FILE__)
    expect(at[3, "Integer + beyond 64 bits"]).to have_attributes(lowered: 2)
    expect(told.to_s).to match(/Checks: \d+, of which \d+ were removed/)
  end

  it "says what it took for granted" do
    list = [1, 2, 3]
    told = section { [0, 1].pmap { |i| list[i] + 1 } }
    expect(told.checks.map(&:kind)).to include(:speculation)
    expect(told.types.values.reduce(:merge)).to include("i" => "Integer")
    expect(told.result).to eq("Integer")
    # The assumption was wrong, and the section was compiled again without it.
    again = Ikra.explain { [0, 7].pmap { |i| list[i].nil? } }
    expect(again.value).to eq([false, true])
    expect(again.sections.size).to eq(1)
  end

  it "lists the writes that elements may share, with their lines" do
    list = [0, 0, 0]
    numbers = [0, 1, 2]
    told = section { numbers.peach { |i| list[i % 3] = i } }
    expect(told.shared.map { |write| [write.what, write.path, write.line] }).to eq([["the elements of Array of Integer", __FILE__, __LINE__ - 1]])
    expect(told.to_s).to include(<<~TEXT.chomp)
      Writes that elements may share (run it with check: :races to see whether they do)
        line #{told.line}: the elements of Array of Integer; to prove them apart, write to an array that only the element has
    TEXT

    streets = Array.new(3) { Explained::Street.new }
    streets.each_with_index { |street, i| street.next = streets[i - 1] }
    line = Explained::Street.instance_method(:push).source_location.last
    told = section { streets.peach { |street| street.push } }
    expect(told.shared.map { |write| [write.what, write.line] }).to eq([["@load of Explained::Street", line]])
    expect(section { cars.peach { |car| car.move(:sunny) } }.shared).to be_empty
    expect(section { [[1], [2]].peach { |row| row[0] = 3 } }.shared).to be_empty
    total = [0]
    expect(section { numbers.peach { |i| total[0] += i } }.shared).to be_empty
  end

  it "says whether ticks are fused, and what keeps them apart" do
    expect(section { cars.peach(4) { |car| car.move(:sunny) } }).to have_attributes(fused?: true, apart: [], ticks: 4, operation: :peach)
    streets = Array.new(3) { Explained::Street.new }
    streets.each_with_index { |street, i| street.next = streets[i - 1] }
    told = section { streets.peach(2) { |street| street.load = street.next.load + 1.0 } }
    expect(told).to have_attributes(fused?: false, apart: ["@load of Explained::Street"])
    expect(told.to_s).to include("a launch for each tick: elements may share @load of Explained::Street")
  end

  it "names the backend, and why" do
    expect(section { [1].pmap(backend: :reference) { |x| x } }).to have_attributes(backend: :reference, why: "it was asked for")
    chosen = Backends.present.include?(:cuda) ? /\Atoo few elements to keep a GPU busy: 1,/ : /\Ano GPU: (?!backend)/
    expect(section { [1].pmap(backend: :auto) { |x| x } }).to have_attributes(backend: :cpu, why: chosen)
    8.times { [1].pmap(backend: :auto) { |x| x } }
    expect(section { (0...3_000_000).pmap(backend: :auto) { |x| x } }.why).to start_with("no GPU: ") unless Backends.present.include?(:cuda)
  end

  it "shows generated code on request" do
    told = section { [1.5].pmap(backend: :cpu) { |height| height * 2.0 } }
    expect(told.code).to eq(told.code(:ir)).and start_with("program \"block at #{__FILE__}:#{told.line}\"").and include("fmul")
    expect(told.code(:lowered)).to include("fmul")
    expect(told.code(:cpu)).to include("function", "fmul")
    expect(told.code(:cuda)).to include("__device__", "* 0x1p+1").or include("__device__", "* 2.0")
    expect { told.code(:arm) }.to raise_error(ArgumentError, /arm is not one of :ir, :lowered, :cpu, :cuda/)
  end

  it "measures every stage of compiling" do
    told = section { [1].pmap { |x| x + 40 } }
    expect(told.stages.keys).to eq(%i[source syntax world infer lower passes layout prepare])
    expect(told.stages.values).to all(be_between(0.0, 20.0))
    expect(told.stages.fetch(:infer)).to be_positive
  end

  on_every_backend do
    it "explains a block that is compiled already, and leaves it as it is" do
      work = proc { |x| x * 3 }
      expect([1, 2].pmap(backend: backend, &work)).to eq([3, 6])
      explanation = Ikra.explain { [1, 2].pmap(backend: backend, &work) }
      expect(explanation.value).to eq([3, 6])
      expect(explanation.sections.first).to have_attributes(backend: backend == :cuda_shim ? :"cuda-shim" : backend, result: "Integer")
      expect([1.5].pmap(backend: backend, &work)).to eq([4.5])
    end
  end

  it "sees the sections of its own thread alone, and nests" do
    inner = nil
    outer = Ikra.explain do
      Thread.new { [1].pmap { |x| x } }.join
      inner = Ikra.explain { [2].pmap { |x| x } }
      [3].pmap { |x| x }
    end
    expect(outer.sections.size).to eq(2)
    expect(inner.sections.size).to eq(1)
  end

  it "ends with the block's exception, and asks for nothing more" do
    expect { Ikra.explain { [0].pmap { |x| 1 / x } } }.to raise_error(ZeroDivisionError)
    expect { Ikra.explain { [0].pmap { |x| puts x } } }.to raise_error(Ikra::CompileError)
    expect(Ikra.explain { :nothing }).to have_attributes(value: :nothing, sections: [], to_s: "no operation of Ikra's ran")
  end

  it "is readable" do
    scale = 2
    told = section { [1, 2, 2**40].pmap(backend: :cpu) { |x| x * scale } }
    text = told.to_s.sub(/Compiled in: .*/, "Compiled in: …").gsub(__FILE__, "spec.rb").gsub(/\b#{told.line}\b/, "7").sub(/^ +7/, "     7")
    expect(text).to eq(<<~TEXT.chomp)
      pmap at spec.rb:7, over 3 elements
           7  { |x| x * scale }  # scale: Integer, x: Integer
      Result: Integer
      Columns
        element                      i64  each element; array, 8 bytes a row; read
        result                       i64  each element; array, 8 bytes a row; written
      Checks: 1, of which 0 were removed
        line 7: Integer * beyond 64 bits
      Jobs: one for each element, in their order
      Backend: cpu (it was asked for)
      Compiled in: …
    TEXT
  end

  it "says what a backend needs that is not there, without where it was looked for", unless: Backends.present.include?(:cuda) do
    told = StringIO.new
    Ikra.doctor(told)
    expect(told.string).to match(/^cuda: no GPU: (?!backend|looking)/)
    # The second message is the same.
    messages = Array.new(2) { [1].pmap(backend: :cuda) { |x| x } rescue $!.message }
    expect(messages).to eq([messages.first] * 2).and all(start_with("looking for an NVIDIA GPU: "))
  end

  it "says what it needs" do
    expect { Ikra.explain }.to raise_error(ArgumentError, "Ikra.explain needs a block")
  end

  it "tells of what runs no block: which operation, over how many elements of which kind, where and why there, and how long it took" do
    numbers = [1.5, 2.5, 0.5]
    array = Ikra::MDArray.new(numbers)
    sum, psum, list = Ikra.explain { [array.sum(backend: :cpu), numbers.psum, array.to_a] }.operations
    expect(sum).to have_attributes(operation: :sum, path: __FILE__, line: __LINE__ - 1, elements: 3, backend: :cpu, runs: 0)
    expect(sum.steps.map { |step| [step.what, step.elements, step.kind, step.backend, step.why] }).to eq([["sum", 3, "f64", :cpu, "it was asked for"]])
    expect(sum.to_s).to match(/\Asum at #{Regexp.escape(__FILE__)}:\d+, over 3 elements of f64\nStep: sum over .*, on cpu \(it was asked for\): [\d.]+ ms\nTook: [\d.]+ ms \(kernel /)
    expect(psum).to have_attributes(operation: :psum, elements: 3, kind: "Float", backend: :ruby, steps: [])
    expect(psum.to_s).to include("over 3 elements of Float\nBackend: ruby (without a block it is Ruby's own method)\nTook: ")
    expect(list).to have_attributes(operation: :to_a, kind: "f64", seconds: be_positive)
  end

  it "tells what is made of a section's results, behind the section" do
    explanation = Ikra.explain { [3, 1, 2].psort_by(backend: :cpu) { |x| -x } }
    expect(explanation.sections.map(&:operation)).to eq([:psort_by])
    expect(explanation.operations.map { |told| [told.operation, told.runs, told.kind, told.steps.map(&:what)] }).to eq([[:psort_by, 1, "Integer", ["sort"]]])
    expect(explanation.to_s).to include("Sections: 1, as told above\nStep: sort over 3 elements of i64, on cpu (its elements are where the section left them)")
    expect(Ikra.explain { [1].pmap { |x| x } }.operations).to eq([])
    expect(Ikra.explain { nil }.to_s).to eq("no operation of Ikra's ran")
  end

  it "says that the host goes over elements where the backend that was asked for cannot" do
    told = Ikra.explain { Ikra::MDArray.new([1, 2]).sum(backend: :reference) }.operations.last
    expect([told.backend, told.steps.first.why]).to eq([:cpu, "the backend that was asked for leaves it to the host"])
  end

  it "says of which classes elements are that are no numbers of one kind" do
    kinds = [[1, 2.5], [], [:a], 1..3, [true, false]].map { |elements| Ikra.explain { elements.pmax rescue nil }.operations.first.kind }
    expect(kinds).to eq(["Integer | Float", "", "Symbol", "Integer", "true and false"])
  end
end
