# frozen_string_literal: true

require "tmpdir"

# IKRA_DUMP: the text of each new kernel.
RSpec.describe "IKRA_DUMP" do
  around { |example| Dir.mktmpdir("ikra") { |folder| example.metadata[:folder] = folder and example.run } }

  let(:folder) { RSpec.current_example.metadata[:folder] }
  let(:program) { <<~RUBY }
    Ikra.configure { |config| config.backend = :cpu }
    twice = ->(list) { list.pmap { |x| x * 2 } }
    puts twice.call([1, 2]).inspect
    puts twice.call([3, 4]).inspect
    puts twice.call([0.5]).inspect
  RUBY

  # What the program prints with these variables, warnings included.
  def run_with(**variables)
    run_ruby(program, environment: variables.to_h { |name, value| ["IKRA_#{name}".upcase, value] }, folder: folder)
  end

  it "writes each new kernel's stages to a folder, named by the block's file and line" do
    to = File.join(folder, "new", "dumps")
    expect(run_with(dump: "ir, passes,cuda,clif", dump_to: to)).to eq("[2, 4]\n[6, 8]\n[1.0]\n")
    # Two kernels for three calls: the second call finds the first one's.
    names = %w[ir passes cuda clif].flat_map { |word| ["program.rb-3.#{word}", "program.rb-3-2.#{word}"] }
    expect(Dir.children(to)).to match_array(names)
    texts = names.to_h { |name| [name, File.read(File.join(to, name))] }
    expect(texts["program.rb-3.ir"]).to start_with("// ir of the block at #{folder}/program.rb:3 (pmap on cpu)\nprogram ").and include("checked mul")
    expect(texts["program.rb-3.passes"]).to include("entry func")
    expect(texts["program.rb-3.cuda"]).to include("__global__")
    expect(texts["program.rb-3.clif"]).to include("function u")
    expect(texts["program.rb-3-2.ir"]).to include("fmul")
  end

  it "writes to stderr without a folder, and only what is asked for" do
    output = run_with(dump: "passes")
    expect(output).to include("── passes of the block at #{folder}/program.rb:3 (pmap on cpu)\nprogram ").and include("[2, 4]\n")
    expect(output.scan("──").size).to be 2
  end

  it "changes nothing where it is empty" do
    expect(run_with(dump: "")).to eq("[2, 4]\n[6, 8]\n[1.0]\n")
  end

  it "warns where it cannot write, and goes on" do
    File.write(File.join(folder, "file"), "")
    output = run_ruby("$VERBOSE = false\n#{program}", environment: { "IKRA_DUMP" => "ir", "IKRA_DUMP_TO" => File.join(folder, "file") }, folder: folder)
    expect(output).to include("Ikra: IKRA_DUMP: ir of the block at").and include("[2, 4]\n[6, 8]\n[1.0]\n")
  end

  it "refuses unknown words, and lists the known ones" do
    expect { Ikra.__dump("ir,asm", nil) }.to raise_error(ArgumentError, "IKRA_DUMP: asm is not one of ir, passes, cuda, clif")
    output = Open3.capture2e({ "IKRA_DUMP" => "all" }, RbConfig.ruby, "--disable=gems", "-Ilib", "-rikra", "-e", "1").first
    expect(output).to include("IKRA_DUMP: all is not one of ir, passes, cuda, clif (ArgumentError)")
  end
end
