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

  it "follows links to files, folders and headings, and finds those that lead nowhere" do
    Dir.mktmpdir do |folder|
      FileUtils.mkdir(File.join(folder, "docs"))
      File.write(File.join(folder, "README.md"), <<~MARKDOWN)
        # One `Thing::Part`, and more_words
        ## Again
        ## Again
        ```sh
        # No heading
        ```
      MARKDOWN
      File.write(File.join(folder, "docs/page.md"), <<~MARKDOWN)
        [one](../README.md#one-thingpart-and-more_words) and [two
        lines](../README.md#again-1), [folder](.), [web](https://nowhere.example/x), `[code](gone)`
        ## Here
        ![picture](gone.png "with a title")
        [heading](#here) [heading](#gone) [heading](../README.md#no-heading)
        <img src="gone.svg"> [outside](../../page.md)
        ```
        [code](gone)
        ```
      MARKDOWN
      found = Dir.chdir(folder) { Prose::Rules.links(Prose::Rules.documents) }
      expect(found).to contain_exactly(
        ["docs/page.md", 4, "The link gone.png leads to no file."],
        ["docs/page.md", 5, "The link #gone leads to no heading of page.md."],
        ["docs/page.md", 5, "The link ../README.md#no-heading leads to no heading of README.md."],
        ["docs/page.md", 6, "The link gone.svg leads to no file."],
        ["docs/page.md", 6, "The link ../../page.md is outside the project."]
      )
    end
  end
end
