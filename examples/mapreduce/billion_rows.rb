# frozen_string_literal: true

# The one billion row challenge: the least, mean and greatest temperature of each station, by name.
#
#   ruby -Ilib examples/mapreduce/billion_rows.rb [files]

require_relative "../support/comparison"

module BillionRows
  STATIONS = %w[Abéché Bulawayo Cracow Dhaka Edmonton Fès Hamburg İzmir Kyoto Lhasa Moncton Nara Oslo Palembang Québec Zürich].freeze

  def self.generate(directory, rows)
    random = Random.new(3)
    file = File.join(directory, "measurements.txt")
    File.write(file, Array.new(rows) { "#{STATIONS.sample(random: random)};#{(random.rand * 60 - 20).round(1)}\n" }.join)
    [file]
  end

  def self.run(files)
    summary = ->(_station, values) { [values.min, (values.sum / values.size).round(1), values.max] }
    Ikra.lines(files, chomp: true).map_reduce(reduce: summary, order: :key) do |line, out|
      station, temperature = line.split(";")
      out.emit(station, temperature.to_f)
    end
  end
end

if $PROGRAM_NAME == __FILE__
  stations = Comparison.run_on_files(BillionRows, 100_000)
  stations.each { |name, values| puts "#{name}=#{values.join("/")}" }
end
