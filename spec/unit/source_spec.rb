# frozen_string_literal: true

require "open3"
require "tempfile"

# How the source of a block is found, and what happens where that is not possible.
RSpec.describe "The source of a block" do
  # Runs a program in a process of its own. Ruby does not keep files that it loads before Ikra, so these are read again.
  def run_ruby(*arguments, **options)
    output, status = Open3.capture2e(RbConfig.ruby, "-W0", "-I#{File.expand_path("../../lib", __dir__)}", *arguments, **options)
    expect(status).to be_success, output
    output
  end

  def with_file(text)
    Tempfile.create(["ikra", ".rb"]) do |file|
      file.write(text)
      file.close
      yield file.path
    end
  end

  it "tells two blocks on one line apart" do
    results = [[1, 2].pmap { |x| x + 1 }, [1, 2].pmap { |x| x * 10 }]
    expect(results).to eq [[2, 3], [10, 20]]
  end

  it "reads blocks of several lines, in both forms" do
    braces = [1, 2].pmap { |x|
      y = x + 1
      y * 2
    }
    words = [1, 2].pmap do |x|
      y = x + 1
      y * 2
    end
    expect([braces, words]).to eq [[4, 6], [4, 6]]
  end

  it "reads blocks that are not written at the call" do
    increment = proc { |x| x + 1 }
    expect([1, 2].pmap(&increment)).to eq [2, 3]
    expect([1, 2].pmap(&lambda { |x| x + 2 })).to eq [3, 4]
    expect([1, 2].pmap(&->(x) { x + 3 })).to eq [4, 5]
  end

  it "reads numbered parameters" do
    expect([1, 2].pmap { _1 + 1 }).to eq [2, 3]
    expect([[1, 2], [3, 4]].pmap { _1 * _2 }).to eq [2, 12]
  end

  it "counts columns in bytes, as Ruby does" do
    größe = [1, 2].pmap { |ü| ü + 1 }; gröber = [1, 2].pmap { |ü| ü * 7 }
    expect([größe, gröber]).to eq [[2, 3], [7, 14]]
  end

  it "reads what eval was given, whatever its lines are called" do
    expect(eval("[1, 2].pmap { |x| x + 1 }", binding, __FILE__, __LINE__)).to eq [2, 3]
    expect(eval("\n\n[1, 2].pmap { |x|\n  x + 2\n}", binding, "nowhere.rb", 1000)).to eq [3, 4]
    expect(eval("[[1].pmap { |x| x + 1 }, [1].pmap { |x| x + 5 }]", binding, "(irb)", 12)).to eq [[2], [6]]
  end

  it "reads what eval was given where it uses locals from around, as in IRB" do
    scale = 2
    offset = 30
    expect(scale + offset).to eq 32
    expect(eval("[1, 2].pmap { |x| x * scale + offset }", binding, "(irb)", 5)).to eq [32, 34]
    expect(eval("near = 1\n[[1].pmap { |x| x * scale + near },\n [1].pmap { |x| x * offset + near }]", binding)).to eq [[3], [31]]
    expect([1, 2].map { |inner| eval("[1].pmap { |x| x * scale + inner }") }).to eq [[3], [4]]
    alike = "[[1].pmap { |x| x * scale },\n [1].pmap { |x| x * offset }]"
    expect(eval(alike, binding, "(irb)", 7)).to eq [[2], [30]]
    own = "near = 5\n[[1].pmap { |x| x * near },\n [1].pmap { |x| x * scale },\n [1].pmap { |x| x * offset }]"
    expect(eval(own, binding, "(irb)", 3)).to eq [[5], [2], [30]]
    expect([1, 2].map { eval(alike, binding, "(irb)", 1) }).to eq [[[2], [30]]] * 2
  end

  it "reads what eval was given where only a rescue uses a local from around" do
    scale = 10
    expect(eval("[5, 0].pmap { |x| begin; 10 / x; rescue ZeroDivisionError; scale; end }", binding, "(irb)", 9)).to eq [2, scale]
  end

  it "reads -e" do
    expect(run_ruby("-e", "require 'ikra'", "-e", "p [1, 2].pmap { |x| x + 1 }, [1].pmap { |x| x - 1 }")).to eq "[2, 3]\n[0]\n"
    expect(run_ruby("-e", "require 'ikra'; lambda { |n| m = 5; p [1].pmap { |x| x * n + m } }.call(3)")).to eq "[8]\n"
  end

  it "reads a main program that was loaded before Ikra" do
    with_file("require 'ikra'\nX = 3\nmodule M; Y = 4; def self.go = [1].pmap { |x| x + X + Y }; end\np M.go, [2].pmap { |x| x * X }\n") do |path|
      expect(run_ruby(path)).to eq "[8]\n[6]\n"
    end
  end

  it "reads blocks with locals of any block around, from a file that was loaded before Ikra" do
    with_file("$ikra_spec_block = lambda { |scale| offset = 30; proc { |x| x * scale + offset } }.call(2)\n") do |path|
      expect(run_ruby("-e", "load #{path.dump}; require 'ikra'; p [1, 2].pmap(&$ikra_spec_block)")).to eq "[32, 34]\n"
    end
  end

  it "counts columns from behind a byte order mark" do
    with_file("\u{feff}require 'ikra'; print [1, 2].pmap { |x| x + 1 }\nprint [1, 2].pmap { |x| x * 3 }\n") do |path|
      expect(run_ruby(path)).to eq "[2, 3][3, 6]"
      expect(run_ruby("-e", "require 'ikra'; load #{path.dump}")).to eq "[2, 3][3, 6]"
    end
  end

  it "refuses a program from standard input, of which nothing is left" do
    program = "require 'ikra'\nbegin; [1].pmap { |x| x }; rescue Ikra::CompileError => e; puts e.message; end\n"
    expect(run_ruby("-", stdin_data: program)).to start_with "Ruby kept no source of -:2"
  end

  it "refuses a file that changed after it was loaded before Ikra" do
    with_file("BLOCK = proc { |x| x + 1 }\nSAME = proc { |x| x + 3 }\n") do |path|
      output = run_ruby("-e", <<~RUBY)
        load #{path.dump}
        File.write(#{path.dump}, "BLOCK = proc { |x| x + 2 }\nSAME = proc { |x| x + 3 }\n")
        require "ikra"
        begin
          [1].pmap(&BLOCK)
        rescue Ikra::CompileError => e
          puts e.message
        end
        p [1].pmap(&SAME)
      RUBY
      expect(output).to eq "#{path} changed since it was loaded: what stands at line 1 now is not the code that runs. " \
                           "Load it again, or start the program again; a method that other code made of a text (class_eval, def_delegators) is to be written with def\n\n" \
                           "Instead: with unsupported: :ruby the block runs as plain Ruby\n[4]\n"
    end
  end

  # Ruby 3.1 and 3.2 keep the text of files. 3.3 keeps only that of `eval`.
  it "runs what was loaded, though the file changed, when Ruby kept the text; else says that it changed" do
    with_file("$ikra_spec_block = proc { |x| x + 1 }\n") do |path|
      load path
      File.write(path, "# nothing\n")
      if RubyVM::InstructionSequence.of($ikra_spec_block).script_lines
        expect([1].pmap(&$ikra_spec_block)).to eq [2]
      else
        expect { [1].pmap(&$ikra_spec_block) }.to raise_error(Ikra::CompileError, /changed since it was loaded/)
      end
    end
  end

  it "refuses what is not written in Ruby" do
    expect { [1].pmap(&{ 1 => 2 }) }.to raise_error(Ikra::CompileError, /has no source to compile: it is made of a Hash/)
    expect { [1].pmap(&STDOUT.method(:puts)) }.to raise_error(Ikra::CompileError, /kernels cannot hold an IO/)
    expect { [1].pmap(&1.method(:singleton_methods)) }.to raise_error(Ikra::CompileError, /kernels do not know \w+#singleton_methods/)
  end

  it "refuses a method where several stand, and one that was made of a block" do
    shared = Class.new { def one(x) = x + 1; def two(x) = x * 3 } # rubocop:disable Style/Semicolon
    expect { [1].pmap(&shared.new.method(:two)) }.to raise_error(Ikra::CompileError, /several methods begin at/)
    made = Class.new do
      define_method(:three) { |x| x * 3 }
      def four(x) = x + 4
      alias_method :five, :four
    end
    expect { [1].pmap(&made.new.method(:three)) }.to raise_error(Ikra::CompileError, /was made of a block/)
    expect([1, 2].pmap(&made.new.method(:five))).to eq([5, 6])
  end

  it "gives NoMethodError for a symbol that names no method" do
    expect { [1].pmap(&:frobnicate) }.to raise_error(NoMethodError, /undefined method .frobnicate. for (1:Integer|an instance of Integer)/)
  end

  it "points at the place in the source" do
    text = $stdout
    line = __LINE__ + 1
    expect { [1].pmap { |x| text + x } }.to raise_error(Ikra::CompileError) { |error|
      expect(error.message).to start_with "#{__FILE__}:#{line}:"
      expect(error.message).to include "    expect { [1].pmap { |x| text + x } }.to raise_error"
      expect(error.message).to match(/^ +\^\^\^\^$/)
    }
  end
end
