# frozen_string_literal: true

RSpec.describe Ikra::MDArray do
  it "is the same in many threads" do
    array = md(Array.new(1000) { |i| i })
    shared = array * 2 + 1
    threads = Array.new(16) do |n|
      Thread.new do
        10.times.map do |k|
          view = array.reshape(20, 50)[n]
          [shared.sum, (shared + n).sum, view.map { |x| x + k }.sum, (array.reshape(20, 50).t * n).sum, array.dup.map! { |x| x - k }.max]
        end
      end
    end
    sum = 999_000 + 1000
    threads.each_with_index do |thread, n|
      expect(thread.value).to eq(Array.new(10) { |k| [sum, sum + 1000 * n, (n * 50...(n + 1) * 50).sum + 50 * k, 499_500 * n, 999 - k] })
    end
  end

  it "lives through the GC" do
    array = md([[1, 2, 3], [4, 5, 6]])
    story = lambda do
      view = (array * 2).t[1..2, true]
      sums = (view + 1).sum(axis: 1)
      array[0, 0] += 1
      [view.to_a, sums.to_a, array.map { |x| x + 1 }.to_a, array[0, 0]]
    end
    # Compiled before.
    story.call
    begin
      GC.stress = 0x01 # minor collections, at each allocation
      result = story.call
    ensure
      GC.stress = false
    end
    expect(result).to eq([[[4, 10], [6, 12]], [16, 20], [[4, 3, 4], [5, 6, 7]], 3])
  end

  it "leaves nothing behind" do
    array = md(Array.new(256) { |i| i * 0.5 })
    run = -> { 300.times { ((array + 1) * array.reverse).sum; array.reshape(16, 16).t.map { |x| x }.sync; array[3] = 1.0 } }
    run.call
    GC.start
    before = ObjectSpace.count_objects[:TOTAL] - ObjectSpace.count_objects[:FREE]
    arrays = Ikra.memory[:arrays]
    5.times { run.call }
    GC.start
    expect(ObjectSpace.count_objects[:TOTAL] - ObjectSpace.count_objects[:FREE] - before).to be < 2000
    expect(Ikra.memory[:arrays] - arrays).to be < 100
  end

  it "leaves a program's variables alone, whatever they are called" do
    expect(run_ruby(<<~RUBY)).to eq("[2, 3, 4]\n[7, \"text\", nil, 5]\n")
      x0, y0, i, b0 = 7, "text", nil, 5
      p (Ikra::MDArray[1, 2, 3] + 1).to_a
      p [x0, y0, i, b0]
    RUBY
  end

  it "is what it was in a child process" do
    array = (md([1, 2, 3]) * 2).map { |x| x }
    reader, writer = IO.pipe
    child = fork do
      reader.close
      writer.write(Marshal.dump([array.to_a, array.map(backend: :cpu) { |x| x + 1 }.to_a]))
      writer.close
      exit!(true)
    end
    writer.close
    expect(Marshal.load(reader.read)).to eq([[2, 4, 6], [3, 5, 7]])
    Process.wait(child)
  end
end
