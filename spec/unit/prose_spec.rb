# frozen_string_literal: true

require "tmpdir"
load File.expand_path("../../bin/prose", __dir__)

# The rules of bin/prose. The rule for sentences has examples of its own, which each run of bin/prose tests.
RSpec.describe "bin/prose" do
  def found?(word, text) = text.match?(Prose::Glossary.pattern(word))

  it "finds a retired word in every case, in the plural, and within identifiers" do
    ["the gizmo", "Gizmos", "a gizmo's", "gizmo_size", "MAX_GIZMO", "FreeGizmo", "GizmoSize"].each { |text| expect(found?("gizmo", text)).to be(true), text }
    ["agizmo", "gizmoid"].each { |text| expect(found?("gizmo", text)).to be(false), text }
  end

  it "finds an identifier as it is written" do
    expect(found?("`Gizmo`", "Retry::Gizmo(x)")).to be(true)
    ["gizmo", "the Gizmos", "GIZMO", "FreeGizmo"].each { |text| expect(found?("`Gizmo`", text)).to be(false), text }
    expect(["Gizmo::Early", "Right::Early", "FreeGizmo::Early"].map { |text| found?("`Gizmo::`", text) }).to eq([true, false, false])
    expect(["x.gizmo", "x.gizmos", "gizmo"].map { |text| found?("`.gizmo`", text) }).to eq([true, false, false])
  end

  it "retires the words of rows that say so, and has a term for each" do
    rows = Prose.lines(Prose::Glossary::FILE).select { |line| line.start_with?("| ") && !line.start_with?("| ---", "| term") }
    cells = rows.map { |row| row.split("|", -1)[1..-2].map(&:strip) }
    expect(cells.map(&:size).uniq).to eq([5])
    expect(cells.map(&:last).uniq - ["", "yes"]).to be_empty
    expect(cells.map(&:first)).to all(match(/\S/))
    expect(cells.map(&:first).uniq).to eq(cells.map(&:first))
    words = cells.select { |row| row.last == "yes" }.sum { |row| row[3].split(",").size }
    expect(Prose::Glossary.retired.size).to eq(words)
    expect(words).to be > 20
  end

  it "looks at the project's own files" do
    expect(Prose::Rules.all).to include("README.md", "bin/test", "docs/dev/glossary.md", "ext/ikra-core/src/lib.rs", "lib/ikra/lazy.rb")
    expect(Prose::Rules.all.grep(%r{\A(target|tmp|docs/dev/notes)/})).to be_empty
  end

  it "counts columns in comments and text, and not in code, tables and blocks of code" do
    long = "x" * 121
    Dir.mktmpdir do |folder|
      { "a.rb" => "#{long}\n# #{long}\n", "b.rs" => "#{long}\n    /// #{long}\n", "c.md" => "| #{long}\n```\n#{long}\n```\n#{long}\n" }.each do |name, text|
        File.write(File.join(folder, name), text)
      end
      lines = Prose::Rules.columns(Dir[File.join(folder, "*")].sort).map { |file, line, _| [File.basename(file), line] }
      expect(lines).to eq([["a.rb", 2], ["b.rs", 2], ["c.md", 5]])
    end
  end
end
