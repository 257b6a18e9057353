# frozen_string_literal: true

require "json"
require "open3"
require "tmpdir"
require File.expand_path("../../benchmark/suite/suite", __dir__)

# The benchmarks' Python. Wherever there is a Python, it must parse and define what its runners call. Where its
# libraries are installed, it must give what plain Ruby gives, and draw.
RSpec.describe "the benchmarks' Python" do
  directory = File.expand_path("../../benchmark", __dir__)
  python = [ENV["BENCHMARK_PYTHON"], Harness::PYTHON].compact.find { |path| File.executable?(path) } || "python3"

  define_method(:python) do |*arguments, **options|
    output, status = Open3.capture2e({ "PYTHONDONTWRITEBYTECODE" => "1" }, python, *arguments, **options)
    expect(status).to be_success, output
    output
  rescue Errno::ENOENT
    skip "NOT TESTED: there is no Python"
  end

  define_method(:needs) do |*libraries|
    missing = libraries.reject { |library| system(python, "-c", "import #{library}", out: File::NULL, err: File::NULL) }
    skip "NOT TESTED: #{missing.join(", ")} not installed (rake benchmark:python)" unless missing.empty?
  end

  define_method(:results) { |code| JSON.parse(python("-c", "import json, results\n#{code}", chdir: File.join(directory, "suite"))) }

  # Top-level functions of each file with the number of their parameters, and what each imports.
  define_method(:read) do |paths|
    JSON.parse(python("-c", <<~PYTHON, *paths))
      import ast, json, sys
      found = {}
      for path in sys.argv[1:]:
          tree = ast.parse(open(path).read(), path)
          imports = [name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
          found[path] = {"functions": {node.name: len(node.args.args) for node in tree.body if isinstance(node, ast.FunctionDef)}, "imports": imports}
      print(json.dumps(found))
    PYTHON
  end

  it "parses" do
    paths = Dir[File.join(directory, "**/*.py")]
    expect(paths.size).to be > 40
    expect(read(paths).keys).to match_array(paths)
  end

  # The programs that are written in Python, too.
  define_method(:programs) { Program.names.select { |name| Dir[File.join(Program::HERE, name, "*.py")].any? } }

  it "has of every program that is written in Python a compute that takes the columns, in every library" do
    expect(programs.size).to be >= 11
    libraries = { "numba" => %w[numba], "numba_cuda" => %w[numba], "cupy" => %w[cupy cupyx], "jax" => %w[jax] }
    paths = programs.product(libraries.keys).to_h { |name, library| [File.join(Program::HERE, name, "#{library}.py"), library] }
    read(paths.keys).each do |path, found|
      expect(found["functions"]["compute"]).to eq(1), path
      others = found["imports"].map { |name| name[/\w+/] } - libraries.fetch(paths.fetch(path)) - %w[functools math numpy]
      expect(others).to eq([]), "#{path} imports #{others.join(", ")}"
    end
  end

  it "has runners of every version that the suite knows" do
    runners = File.read(File.join(directory, "suite/python.py"))[/^LIBRARIES = \{(.*)\}/, 1].scan(/"(\w+)":/).flatten
    expect(runners).to match_array(Version.all.select { |version| version.kind == :python }.map(&:name))
  end

  it "loads a numba-cuda that asks for what its NumPy has no more, and says which releases failed for another reason" do
    Dir.mktmpdir do |there|
      { "numpy.py" => "vstack = print", "numba.py" => "import numpy; numpy.row_stack; raise AttributeError('no kernel')" }.each { |file, text| File.write(File.join(there, file), text) }
      { "numpy" => "2.5.0", "numba" => "0.66", "numba-cuda" => "0.30.4", "other" => "1" }.each do |name, version|
        Dir.mkdir(about = File.join(there, "#{name.tr("-", "_")}-#{version}.dist-info"))
        File.write(File.join(about, "METADATA"), "Metadata-Version: 2.1\nName: #{name}\nVersion: #{version}\n")
      end
      # Without the libraries that this Python may have.
      output, status = Open3.capture2e({ "PYTHONPATH" => there }, python, "-S", File.join(directory, "suite/python.py"), "numba_cuda", "", "", "", "0")
      expect([status.success?, output.lines.last(2).join]).to eq([false, "AttributeError: no kernel\nwith numba 0.66, numba-cuda 0.30.4, numpy 2.5.0\n"])
    end
  rescue Errno::ENOENT
    skip "NOT TESTED: there is no Python"
  end

  it "has what the versions need in what rake benchmark:python installs: everywhere, and where there is a GPU" do
    lists = %w[requirements.txt requirements_gpu.txt].map { |file| File.readlines(File.join(directory, "suite", file)).map { |line| line[/\A[\w-]+/] } }
    expect(lists.first).to include("numpy", "numba", "jax", "matplotlib")
    expect(lists.last.join(" ")).to include("cupy", "jax", "numba-cuda")
  end

  it "gives what plain Ruby gives, in Numba and in JAX", slow: true do
    needs "numpy", "numba", "jax"
    environment = { "SIZE" => "tiny", "VERSIONS" => "ruby;numba;jax", "BENCHMARK_PYTHON" => python }
    output, status = Open3.capture2e(environment, RbConfig.ruby, "-I#{File.dirname(directory)}/lib", File.join(directory, "programs.rb"))
    expect(status).to be_success, output
    expect(output.scan(/^  numba  .*s  upload/).size).to eq(programs.size), output
    expect(output.scan(/^  jax  .*s  upload/).size).to eq(programs.size), output
  end

  describe "results.py" do
    it "makes the page without pictures of what is committed" do
      page = python(File.join(directory, "suite/results.py"), File.join(directory, "results"))
      expect(page).to include("<h1>Ikra: benchmarks</h1>", "First calls", "What objects cost", "What the project promises", "Ikra, GPU, faster than Ikra, CPU from", "CUDA by hand, NVRTC")
      machines = page.scan(%r{<h2>(.*?)</h2>}).flatten
      expect(machines.uniq).to eq(machines)
      expect(machines).to all(match(/cores of \S/))
    end

    it "says from which size on something is faster" do
      code = <<~PYTHON
        def points(*times): return [(10 ** (place + 2), time, False) for place, time in enumerate(times)]
        cross = results.crossover
        print(json.dumps([cross(points(1, 10, 100), points(10, 10, 10)), cross(points(1, 1), points(2, 2)), cross(points(2, 2), points(1, 1)),
                          cross(points(1, 4, 1, 4), points(2, 2, 2, 2)), cross(points(1), [])]))
      PYTHON
      between, never, always, last, nothing = results(code)
      expect(between).to match([be_within(1e-6).of(1000.0), be_within(1e-6).of(10.0)])
      expect([never, always, nothing]).to eq([nil, [100, nil], nil])
      expect(last.first).to be_within(1).of(10**4.5)
    end

    it "says what objects cost: each ivar and object, a call over one, and the tracer on all cores" do
      slots = { "trace" => [1.25, 14.0], "pack" => [-0.3, 3.0], "unpack" => [9.12, 3.3] }
      values = slots.flat_map { |phase, (ivar, object)| [["slots, #{phase}: for each ivar", ivar], ["slots, #{phase}: for each object beside them", object]] }.to_h
      values.update("tracer, allocated: 4 cores against one" => 1.2, "tracer, allocated: 16 cores against one" => 1.6, "check, allocated: 16 cores against one" => 5.0)
      record = { values: values.transform_values { |value| { value: value } }, timings: { "a call over one object: whole" => { median: 7.01e-6 } }, source: { file: "o.json", commit: "c" } }
      table, nothing = results("record = json.loads(#{JSON.generate(record).inspect})\nprint(json.dumps([results.objects(record), results.objects(None)]))")
      expect(table.scan(%r{<tr>(.*?)</tr>}).map { |row, | row.gsub(/<[^>]+>/, "|").squeeze("|") }).to eq(
        ["|on one core|each ivar|each object beside them|", "|tracing|1.25 ns|14 ns|", "|packing|less than 0.1 ns|3 ns|", "|writing back|9.12 ns|3.3 ns|", "|a call over one object|7.01 µs|",
         "|the tracer on 16 cores against one, heap allocated|1.6×|"]
      )
      expect(table).to include("o.json (c)")
      expect(nothing).to eq("")
    end

    it "compares kernels with those by hand of the same run, where it has any" do
      version = ->(kernel, file) { { kernel: kernel, source: { file: file } } }
      both = { versions: { cuda: version.call(2.0, "new"), "cuda by hand, nvcc" => version.call(3.0, "new"), "cuda by hand, nvrtc" => version.call(1.0, "old") } }
      one = { versions: { cuda: version.call(2.0, "new"), "cuda by hand, nvrtc" => version.call(1.0, "old") } }
      programs = [both, one].map { |program| "json.loads(#{JSON.generate(program).inspect})" }.join(", ")
      expect(results("print(json.dumps([results.by_hand(program, 'gpu') for program in (#{programs})]))")).to eq([[3.0, "cuda by hand, nvcc"], [1.0, "cuda by hand, nvrtc"]])
    end

    # A record of one version of one program.
    def record(version, date, program: "map", size: "normal", elements: 8, benchmark: "programs", cpu: "A", ruby: "3.1.2p20", **more)
      versions = { version => { lines: 1, phases: {}, median: 1.0, kernel: 1.0 } }
      targets = [{ name: "#{program}: fast", value: 1, unit: "×", at_least: 1, met: true }]
      { benchmark: benchmark, machine: { date: date, commit: "c#{date}", cores: 2, cpu: cpu, ruby: "ruby #{ruby} (2022)" }, size: size, targets: targets,
        programs: { program => { size: elements, elements: elements, versions: versions, skipped: {} } } }.merge(more)
    end

    def latest(*records)
      Dir.mktmpdir do |there|
        records.each_with_index { |record, number| File.write(File.join(there, "#{number}.json"), JSON.generate(record)) }
        results("print(json.dumps(results.latest(#{there.inspect})))")
      end
    end

    it "puts later versions beside earlier ones, and knows where each is from" do
      found = latest(record("ruby", "1"), record("cpu", "2")).fetch("no GPU, 2 cores of A, Ruby 3.1").fetch("programs").fetch("programs").fetch("map").fetch("versions")
      expect(found.transform_values { |version| version["source"] }).to eq("ruby" => { "file" => "0.json", "commit" => "c1" }, "cpu" => { "file" => "1.json", "commit" => "c2" })
    end

    it "puts the machine first of which most can be drawn, and then the one of the latest run" do
      machines = ->(*records) { latest(*records).keys.map { |name| name[/of (\w)/, 1] } }
      expect(machines.call(record("ruby", "1"), record("ruby", "2", benchmark: "scaling"), record("ruby", "3", cpu: "B"))).to eq(%w[A B])
      expect(machines.call(record("ruby", "1"), record("ruby", "2", cpu: "B"))).to eq(%w[B A])
    end

    it "leaves out small runs, what is no more, and does not mix machines" do
      found = latest(record("ruby", "1"), record("cpu", "2", size: "small", elements: 4), record("cpu", "3", notes: ["size small"], elements: 4), record("ruby", "4", benchmark: "gone"),
                     record("ruby", "5", program: "gone"), record("ruby", "6", cpu: "B"), record("ruby", "7", ruby: "3.3.1"))
      expect(found.keys).to contain_exactly("no GPU, 2 cores of A, Ruby 3.1", "no GPU, 2 cores of A, Ruby 3.3", "no GPU, 2 cores of B, Ruby 3.1")
      programs = found.fetch("no GPU, 2 cores of A, Ruby 3.1").fetch("programs")
      expect(found.fetch("no GPU, 2 cores of A, Ruby 3.1").keys).to eq(["programs"])
      expect(programs.fetch("programs").transform_values { |program| [program["size"], program["versions"].keys] }).to eq("map" => [8, ["ruby"]])
      expect(programs.fetch("targets").map { |target| target["name"] }).to eq(["map: fast"])
    end
  end

  describe "document.py" do
    it "wrote the document of the results that are committed, of which none is superseded" do
      Dir.mktmpdir do |there|
        path = File.join(there, "performance.md")
        python(File.join(directory, "suite/document.py"), File.join(directory, "results"), path)
        expect(File.read(path)).to eq(File.read(File.join(directory, "../docs/performance.md")))
        expect(python(File.join(directory, "suite/document.py"), "--superseded", File.join(directory, "results")).strip).to eq("")
      end
    end

    it "shows a goal beside what was measured, and the worst of several of one kind" do
      targets = [["map: cpu: fast", 0.5, false], ["map: cpu: small*", 2.0, true]].map { |name, value, met| { name: name, value: value, unit: "×", at_least: 1, met: met } }
      blocks = [3.0, 14.0].map { |value| { name: "examples/a.rb:#{value.to_i}: source to kernel", value: value, unit: "ms", at_most: 20, met: true } }
      records = { programs: targets, compile: blocks }.to_h do |benchmark, found|
        [benchmark, { targets: found.map { |target| target.merge(source: { file: "#{benchmark}.json" }) } }]
      end
      code = <<~PYTHON
        import document
        records = json.loads(#{JSON.generate(records).inspect})
        print(json.dumps(document.verdicts({"no GPU, 2 cores of A, Ruby 3.1": records})))
      PYTHON
      table = results(code)
      expect(table).to include("| | goal | A, 2 cores |", "| map: cpu: fast | at least 1 × | **0.50 missed** |", "| map: cpu: small\\* | at least 1 × | 2.00 met |")
      expect(table).to include("| source to kernel, the slowest of the examples' blocks | at most 20 ms | 14.0 met |", "[compile](../benchmark/results/compile.json).")
    end

    it "keeps the newest file of each benchmark and machine, and of programs the newest of each version" do
      files = { "calls-20260101-000000-2cores" => ["1", {}], "calls-20260102-000000-2cores" => ["2", {}], "calls-20260101-000000-h200" => ["1", {}],
                "programs-20260101-000000-2cores" => ["1", %w[ruby]], "programs-20260102-000000-2cores" => ["2", %w[cpu]], "programs-20260103-000000-2cores" => ["3", %w[cpu]] }
      Dir.mktmpdir do |there|
        files.each do |name, (date, versions)|
          record = { benchmark: name[/[a-z]+/], machine: { date: date }, targets: [], programs: { map: { versions: versions.to_h { |version| [version, {}] } } } }
          File.write(File.join(there, "#{name}.json"), JSON.generate(record))
        end
        found = results("import document\nprint(json.dumps(document.superseded(#{there.inspect})))")
        expect(found).to eq(%w[calls-20260101-000000-2cores.json programs-20260102-000000-2cores.json])
      end
    end
  end

  describe "report.py" do
    it "draws what is committed", slow: true do
      needs "matplotlib"
      Dir.mktmpdir do |there|
        python(File.join(directory, "suite/report.py"), File.join(directory, "results"), there, File.join(there, "pictures"))
        drawn = Dir[File.join(there, "*.svg")].map { |path| File.basename(path, ".svg") }
        expect(drawn).to include("cpu-speedup", "gpu-speedup", "gpu-kernels", "gpu-scaling", "gpu-roofline-gpu", "cpu-lines")
        shown = %w[README.md docs/performance.md].flat_map { |file| File.read(File.join(directory, "..", file)).scan(%r{pictures/((?:cpu|gpu)-[\w-]+\.png)}).flatten }
        expect(Dir.children(File.join(there, "pictures"))).to match_array(shown.uniq)
      end
    end
  end
end
