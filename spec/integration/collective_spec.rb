# frozen_string_literal: true

RSpec.describe "What goes over all elements on a device" do
  before { skip "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL) }

  around { |example| Dir.mktmpdir("ikra-collective") { |folder| (@folder = folder) && example.run } }

  # Runs a program that prints what is wrong, on a machine with a simulated GPU.
  def on_a_device(program) = run_ruby(<<~RUBY + program, environment: StandIn.environment(@folder), folder: @folder)
    Ikra.config.backend = :cuda
    def same(name, got, expected) = (puts "\#{name}: \#{got.inspect[0, 200]}, not \#{expected.inspect[0, 200]}" unless got.inspect == expected.inspect)
    def there(name, array) = (puts "\#{name} is not on the device: \#{array.inspect}" unless array.inspect.include?("on the device"))
  RUBY

  it "gives arrays that stay there" do
    expect(on_a_device(<<~RUBY)).to eq ""
      [1, 33, 5000].each do |n|
        ints = Ikra::MDArray.new(n) { |i| i * 7919 % 1009 - 500 }
        floats = Ikra::MDArray.new(n) { |i| (i * 7919 % 1009 - 500) / 8.0 }
        [ints, floats].each do |array|
          list = Array.new(n) { |i| array.dtype == :i64 ? i * 7919 % 1009 - 500 : (i * 7919 % 1009 - 500) / 8.0 }
          made = [array.cumsum, array.cummax, array.sort, array.sort(descending: true), array.select { |x| x > 0 }, array[array > 100]]
          made.each { |one| there(n, one) }
          sums = []
          list.each { |x| sums << (sums.last || 0) + x }
          [sums, list.each_index.map { |i| list[0..i].max }, list.sort, list.sort.reverse, list.select { |x| x > 0 }, list.select { |x| x > 100 }].zip(made) do |expected, one|
            same(n, one.to_a, expected)
          end
        end
      end
      rows = Ikra::MDArray.new(40, 3, 7) { |i, j, k| (i * 31 + j * 7 + k * 3) % 50 }
      nested = rows.dup.to_a
      there("rows", rows.sort)
      same("rows", rows.sort.to_a, nested.map { |plane| plane.map(&:sort) })
      same("columns", rows.sort(axis: 1).to_a, nested.map { |plane| plane.transpose.map(&:sort).transpose })
      bytes = Ikra::MDArray.new(300, dtype: :u8) { |i| i * 7 % 256 }
      same("bytes", bytes.sort.to_a, Array.new(300) { |i| i * 7 % 256 }.sort)
      begin
        Ikra::MDArray.new(3) { |i| i == 1 ? 0.0 / 0.0 : 1.0 }.sort
        puts "NaN is sorted"
      rescue ArgumentError
      end
      begin
        Ikra::MDArray.new(3) { |i| i + 2**62 }.cumsum
        puts "a sum beyond 64 bits"
      rescue Ikra::IntegerOverflow
      end
    RUBY
  end

  it "gives the very elements that Ruby gives" do
    expect(on_a_device(<<~RUBY)).to eq ""
      [0, 1, 2, 33, 3000].each do |n|
        list = Array.new(n) { |i| (i * 7919 % 1009 - 500).to_s }
        numbers = list.map(&:to_i)
        table = numbers.zip(list)
        same("select", table.pselect { |x, _| x > 480 }, table.select { |x, _| x > 480 })
        same("most", table.pselect { |x, _| x > -480 }, table.select { |x, _| x > -480 })
        same("reject", numbers.preject { |x| x > 0 }, numbers.reject { |x| x > 0 })
        same("partition", numbers.ppartition { |x| x > 0 }, numbers.partition { |x| x > 0 })
        same("count", numbers.pcount { |x| x > 0 }, numbers.count { |x| x > 0 })
        same("sort_by", numbers.psort_by { |x| -x * 0.5 }, numbers.each_with_index.sort_by { |x, i| [-x * 0.5, i] }.map(&:first))
        same("max_by", numbers.pmax_by(2) { |x| x * x }, numbers.each_with_index.sort_by { |x, i| [x * x, i] }.map(&:first).reverse.first(2))
        same("min_by", numbers.pmin_by { |x| x * x }, numbers.min_by { |x| x * x })
        same("group_by", numbers.pgroup_by { |x| x / 100 }, numbers.group_by { |x| x / 100 })
        same("group_by bool", numbers.pgroup_by { |x| x > 0 }, numbers.group_by { |x| x > 0 })
        same("group_by Float", numbers.pgroup_by { |x| x % 5 * 0.5 }, numbers.group_by { |x| x % 5 * 0.5 })
        same("uniq", numbers.puniq { |x| x / 100 }, numbers.uniq { |x| x / 100 })
      end
      same("NaN", [1.0, 2.0].pgroup_by { |x| x - x == 0.0 ? 0.0 / 0.0 : x }.values, [[1.0], [2.0]])
      begin
        [1.0, 2.0].psort_by { |x| x > 1.0 ? 0.0 / 0.0 : x }
        puts "NaN is sorted"
      rescue ArgumentError
      end
    RUBY
  end
end
