# frozen_string_literal: true

require "json"
require "tmpdir"

module AtOnceInProfile
  class Body
    attr_accessor :a, :b

    def initialize(a)
      @a = a
      @b = a
    end
  end
end

RSpec.describe "Ikra.profile of sections that run at once" do
  bodies = -> { Array.new(40) { |i| AtOnceInProfile::Body.new(i) } }

  # Sums are those of the sections, whose parts are theirs alone.
  def expect_right_sums(profile)
    profile.sections.each do |section|
      expect(section.phases.values.sum).to be <= section.seconds + 1e-5
      expect(section.spans.map { |_, start, time| start + time }).to all be_between(0, profile.seconds + 1e-3)
    end
    sums = profile.phases.to_h { |phase, _| [phase, profile.sections.sum(0.0) { |section| section.phases[phase] || 0.0 }] }
    expect(profile.phases).to match(sums.transform_values { |time| be_within(1e-6).of(time) })
  end

  # Those of the caller's thread do not overlap.
  def expect_no_time_twice(profile)
    expect_right_sums(profile)
    own = profile.sections.sum { |section| section.seconds - (section.lane ? section.launched.reduce(:-).abs : 0.0) }
    expect(own).to be <= profile.seconds + 1e-3
  end

  on_every_backend do
    it "lets them, and tells what ran at once" do
      lists = Array.new(4) { bodies.call }
      expected = lists.map { |list| list.map { |o| 300.times.reduce(o.a) { |a| (a * 5) & 1023 } } }
      profile = Ikra.profile do
        Ikra.concurrently(policy: :plain) { lists.each { |list| list.peach(300, backend: backend) { |o| o.a = (o.a * 5) & 1023 } } }
      end
      expect(lists.map { |list| list.map(&:a) }).to eq expected
      expect(profile.sections.map(&:operation)).to eq [:peach] * 4
      expect(profile.lanes.flatten).to match_array profile.sections
      expect(profile.sections).to all be_beside_with_share
      profile.lanes.each_with_index do |lane, number|
        expect(lane.map(&:lane).uniq).to eq [number]
        lane.map(&:launched).each_cons(2) { |(_, ended), (began, _)| expect(began).to be >= ended }
      end
      expect_no_time_twice(profile)
      expect(profile.to_s).to match(/^block +operation +lane +began +ended +share\n#{Regexp.escape(__FILE__)}:\d+ +peach +0 +[\d.]+ ms +[\d.]+ ms +\d+ %$/)
      expect(profile.to_html).to include "<th>lane</th>"
    end

    it "counts the wait of a section for those before it once" do
      list = bodies.call
      ticks = { reference: 20_000, cuda_shim: 10_000_000 }.fetch(backend, 4_000_000)
      work = lambda do
        Ikra.concurrently do
          list.peach(ticks, backend: backend) { |o| o.a = (o.a * 5) & 1023 }
          list.peach(backend: backend) { |o| o.b = o.a }
          [list.psum(backend: backend, &:b), list.psort_by(backend: backend) { |o| -o.b }, list.pmap(backend: backend, &:b)]
        end
      end
      work.call
      profile = Ikra.profile(&work)
      expect(profile.value[0]).to eq list.sum(&:a)
      expect(profile.sections.map(&:operation)).to match_array %i[peach peach psum psort_by pmap]
      expect(profile.sections.map(&:path).uniq).to eq [__FILE__]
      slow = profile.sections.max_by(&:seconds)
      expect(slow.ticks).to eq ticks
      expect((profile.sections - [slow]).map(&:seconds)).to all be < slow.seconds / 2
      expect_right_sums(profile)
    end
  end

  matcher :be_beside_with_share do
    match { |section| section.beside && section.share.between?(0.0, 1.0) && section.share.positive? }
  end

  it "has no lanes where sections run one after the other" do
    list = bodies.call
    profile = Ikra.profile { [list.peach { |o| o.a += 1 }, Ikra.concurrently(policy: :serial) { list.psum(&:a) }] }
    expect([profile.lanes, profile.sections.map(&:beside), profile.sections.map(&:lane)]).to eq [[], [false] * 2, [nil] * 2]
    expect(profile.to_s).not_to include "lane"
    expect(profile.value[1]).to eq 40 * 41 / 2
  end

  it "measures the call of a section that ends later" do
    list = bodies.call
    profile = Ikra.profile { list.async.peach(3, backend: :cpu) { |o| o.a += 1 } }
    expect(profile.value.value.map(&:a)).to eq [*3..42]
    expect(profile.sections.map(&:operation)).to eq [:peach]
    expect(profile.sections[0].phases).to include :trace, :pack
    expect(profile.sections[0].phases).not_to include :unpack
    within = Ikra.profile { list.async.peach(3, backend: :cpu) { |o| o.a += 1 }.value }
    expect(within.sections[0].phases).to include :trace, :kernel, :unpack
  end

  it "measures what threads of Ruby's run for sections, and nothing of other threads" do
    list = bodies.call
    profile = Ikra.profile do
      Ikra.concurrently(policy: :plain) do
        Thread.new { [5].pmap(backend: :cpu) { |x| x } }.join
        [list.psum(backend: :cpu) { |o| o.a + 1 }, list.pgroup_by(backend: :cpu) { |o| o.a % 3 }]
      end
    end
    expect(profile.sections.map(&:operation)).to match_array %i[psum pgroup_by]
    expect(profile.sections.map(&:beside)).to eq [true] * 2
    expect(profile.sections.map(&:lane)).to all be >= 0
    expect_right_sums(profile)
  end

  it "writes a row for each lane" do
    lists = Array.new(3) { bodies.call }
    profile = Ikra.profile { Ikra.concurrently(policy: :plain) { lists.each { |list| list.peach(2_000, backend: :cpu) { |o| o.a = (o.a * 5) & 1023 } } } }
    events = JSON.parse(profile.to_chrome_trace).fetch("traceEvents")
    names = events.select { |event| event["name"] == "thread_name" }.to_h { |event| [event["tid"], event["args"]["name"]] }
    expect(names.values).to eq ["calls and write-back", *Array.new(profile.lanes.size) { |lane| "lane #{lane}" }]
    kernels = events.select { |event| event["name"] == "kernel" }
    expect(kernels.map { |event| names.fetch(event["tid"]) }).to match_array(profile.lanes.flatten.map { |section| "lane #{section.lane}" })
    expect(events.select { |event| %w[trace pack unpack].include?(event["name"]) }.map { |event| event["tid"] }.uniq).to eq [1]
  end

  it "lets profiles within profiles see the same sections" do
    list = bodies.call
    inner = nil
    outer = Ikra.profile { Ikra.concurrently { inner = Ikra.profile { Ikra.concurrently { list.peach(backend: :cpu) { |o| o.a += 1 } } } } }
    expect([inner, outer].map { |profile| profile.sections.map(&:operation) }).to eq [[:peach]] * 2
    expect(outer.phases[:unpack]).to be_positive
    expect(list.map(&:a)).to eq [*1..40]
  end
end
