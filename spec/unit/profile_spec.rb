# frozen_string_literal: true

require "tmpdir"

RSpec.describe Ikra::Profile do
  let(:numbers) { (1..1000).to_a }

  def profile
    Ikra.profile do
      numbers.pmap(backend: :cpu) { |n| n * 2 }
      3.times { numbers.pselect(backend: :cpu) { |n| n > 10 } }
      :done
    end
  end

  it "has the block's value, and the phases of all sections" do
    found = profile
    expect(found.value).to eq(:done)
    expect(found.phases.keys).to eq(described_class::PHASES.keys)
    expect(found.phases.values.sum).to be_between(0.0, found.seconds).exclusive
  end

  it "knows each section: its operation, its block's place, what it ran on, and how long it took" do
    found = profile
    expect(found.sections.map(&:operation)).to eq(%i[pmap pselect pselect pselect])
    expect(found.sections.map(&:path).uniq).to eq([__FILE__])
    expect(found.sections.map(&:line)).to eq([10, 11, 11, 11])
    expect(found.sections.map { |section| [section.backend, section.elements, section.ticks] }.uniq).to eq([[:cpu, 1000, 1]])
    expect(found.left_out).to eq(0)
  end

  it "knows a Symbol by the place where it stands" do
    line = __LINE__
    found = Ikra.profile do
      numbers.pmap(backend: :cpu, &:succ)
      numbers.pmap(backend: :cpu, &:succ)
    end
    expect(found.sections.map { |section| [section.path, section.line] }).to eq([[__FILE__, line + 2], [__FILE__, line + 3]])
  end

  it "has spans that lie within their section, one after the other, and add up to the phases" do
    found = profile
    found.sections.each do |section|
      ends = section.spans.map { |_, start, seconds| start + seconds }
      expect(section.spans.map { |_, start, _| start }).to all(be >= section.start)
      expect(ends.max).to be <= section.start + section.seconds + 1e-6
      section.spans.each_cons(2) { |(_, start, seconds), (_, later, _)| expect(later).to be >= start + seconds - 1e-6 }
    end
    sums = found.sections.map(&:phases).each_with_object(Hash.new(0.0)) { |phases, all| phases.each { |phase, time| all[phase] += time } }
    found.phases.each { |phase, time| expect(sums[phase]).to be_within(1e-6).of(time) }
    expect(found.sections.first.phases).not_to have_key(:nothing)
  end

  it "measures a section that raises, and leaves the profile around it whole" do
    inner = nil
    outer = Ikra.profile do
      expect { Ikra.profile { [1, 0].pmap(backend: :cpu) { |n| 1 / n } } }.to raise_error(ZeroDivisionError)
      inner = Ikra.profile { [1].pmap(backend: :cpu) { |n| n } }
    end
    expect(inner.sections.size).to eq(1)
    expect(outer.sections.map(&:operation)).to eq(%i[pmap pmap])
  end

  it "measures its own thread alone" do
    found = Ikra.profile { Thread.new { numbers.pmap(backend: :cpu) { |n| n } }.join }
    expect(found.sections).to eq([])
    expect(found.to_s.lines.size).to eq(described_class::PHASES.size + 1)
  end

  it "shows phases, and a row for each block, the slowest first" do
    text = profile.to_s
    expect(text).to match(/^kernel +[\d.]+ ms +[\d.]+ %$/).and match(/^other +[\d.]+ ms/)
    expect(text).to match(/^block +operation +backend +calls +elements +ticks +time +kernel$/)
    expect(text).to match(/^#{Regexp.escape(__FILE__)}:11 +pselect +cpu +3 +1000 +1 +[\d.]+ ms +[\d.]+ ms$/)
    expect(profile.inspect).to match(/\A#<Ikra::Profile .*kernel: [\d.]+ ms.*>\z/)
  end

  it "writes a trace in Chrome's form" do
    Dir.mktmpdir do |there|
      path = File.join(there, "trace.json")
      found = profile
      expect(found.write(path)).to equal(found)
      events = JSON.parse(File.read(path)).fetch("traceEvents")
      sections = events.select { |event| event["name"].start_with?("pselect #{__FILE__}:11") }
      expect(sections.map { |event| [event["ph"], event["args"]["elements"]] }).to eq([["X", 1000]] * 3)
      kernels = events.select { |event| event["name"] == "kernel" }
      expect(kernels.size).to eq(4)
      within = sections.last
      expect(kernels.last["ts"]).to be_between(within["ts"], within["ts"] + within["dur"])
    end
  end

  it "is two tables in a notebook, with everything escaped" do
    html = profile.to_html
    expect(html.scan("<table>").size).to eq(2)
    expect(html.scan(/<(\w+)[ >]/).flatten.tally).to eq(html.scan(%r{</(\w+)>}).flatten.tally)
    section = described_class::Section.new(:pmap, "<b>&.rb", 1, :cpu, 1, 1, 0.0, 1.0, [])
    expect(described_class.new(nil, { kernel: 0.5 }, 1.0, [section]).to_html).to include("&lt;b&gt;&amp;.rb:1")
  end

  it "says what it needs" do
    expect { Ikra.profile }.to raise_error(ArgumentError, "Ikra.profile needs a block")
  end

  # Each phase that the profile counted, without what its sections show of it. Nothing may be left.
  def hidden(found)
    shown = found.sections.map(&:phases).reduce { |sums, phases| sums.merge(phases) { |_, sum, time| sum + time } }
    found.phases.map { |name, time| time - shown.fetch(name, 0.0) }.reject { |rest| rest.abs < 1e-9 }
  end

  # The share of time that no section of a profile shows.
  def unseen(found) = 1.0 - found.sections.sum(&:seconds) / found.seconds

  # The greatest share of a section's time that is in none of its phases.
  def without_phase(found) = found.sections.map { |section| 1.0 - section.phases.values.sum / section.seconds }.max

  it "has one row for an operation, with all that it makes of its sections' results" do
    list = Array.new(50_000) { |i| (i * 7919) % 50_000 }
    sort = lambda do
      list.psort_by(backend: :cpu) { |x| -x }
      list.pgroup_by(backend: :cpu) { |x| x % 10 }
      list.first(1000).psort(backend: :cpu) { |a, b| b <=> a }
    end
    found = Ikra.profile(&sort)
    expect(found.sections.map { |section| [section.operation, section.path, section.elements, section.backend] }).to eq(
      [[:psort_by, __FILE__, 50_000, :cpu], [:pgroup_by, __FILE__, 50_000, :cpu], [:psort, __FILE__, 1000, :cpu]]
    )
    expect(found.sections.map(&:line)).to eq([__LINE__ - 8, __LINE__ - 7, __LINE__ - 6])
    found.sections.each { |section| expect(section.phases.values.sum).to be_between(0.0, section.seconds).exclusive }
    expect(hidden(found)).to be_empty
    # Other programs take time, too: the best of several profiles counts.
    profiles = Array.new(9) { Ikra.profile(&sort) }
    expect(profiles.map { |profile| unseen(profile) }.min).to be < 0.5
    expect(profiles.map { |profile| without_phase(profile) }.min).to be <= 0.5
  end

  it "has a row for what runs no block, too, where it was called" do
    list = Array.new(50_000) { |i| (i * 7919) % 50_000 }
    array = Ikra::MDArray.new(list.map(&:to_f))
    compute = lambda do
      array.sum(backend: :cpu)
      array.cumsum.sync
      array.sort
      array.to_a
      array.mean
      Ikra::MDArray.new(list)
    end
    found = Ikra.profile(&compute)
    # The wait for a device is an operation of its own.
    sections = found.sections.reject { |section| section.operation == :sync }
    expect(sections.map(&:operation)).to eq(%i[sum cumsum sort to_a mean new])
    expect(sections.map(&:line)).to eq((1..6).map { |at| __LINE__ - 12 + at })
    expect(sections.map { |section| [section.path, section.elements] }.uniq).to eq([[__FILE__, 50_000]])
    expect(found.phases.values_at(:kernel, :unpack, :pack)).to all(be_positive)
    expect(hidden(found)).to be_empty
    expect(Array.new(9) { unseen(Ikra.profile(&compute)) }.min).to be < 0.5
  end

  it "says that a method is Ruby's own" do
    list = Array.new(50_000) { |i| i / 2 }
    found = Ikra.profile { [list.psum, list.puniq, list.pzip(list), list.pmax, list.psort, list.preduce(:+), list.pcount(3)] }
    expect(found.value.first).to eq(list.sum)
    expect(found.sections.map { |section| [section.operation, section.backend] }).to eq(
      [%i[psum ruby], %i[puniq cpu], %i[pzip ruby], %i[pmax ruby], %i[psort cpu], %i[preduce ruby], %i[pcount ruby]]
    )
    expect(found.phases[:ruby]).to be_positive
    expect(found.sections.first.phases.keys).to eq([:ruby])
  end

  it "leaves nothing open when an operation raises or is left" do
    found = Ikra.profile do
      expect { [1, nil].psort }.to raise_error(ArgumentError)
      expect([1, 2].pselect(backend: :cpu) { |x| break x }).to eq(1)
      expect(Ikra.profile { numbers.psum }.sections.map(&:operation)).to eq([:psum])
      numbers.pmap(backend: :cpu) { |n| n }
    end
    expect(found.sections.map(&:operation)).to eq(%i[psort pselect psum pmap])
  end

  it "keeps the time between operations apart, and says so" do
    found = Ikra.profile { sleep 0.02 }
    expect(found.seconds - found.phases.values.sum).to be >= 0.02
    expect(found.to_html).to include(%(title="between operations of Ikra's">other))
  end
end
