# frozen_string_literal: true

# Counts the visitors of each page of a web site: first the different [url, ip], then these by url.
#
#   ruby -Ilib examples/mapreduce/page_views.rb [logs]

require_relative "../support/comparison"

module PageViews
  def self.generate(directory, requests)
    random = Random.new(11)
    file = File.join(directory, "access.log")
    File.write(file, Array.new(requests) do
      %(10.0.#{random.rand(4)}.#{random.rand(60)} - - [30/Nov/2026] "GET /page/#{(random.rand**3 * 50).floor} HTTP/1.1" 200 #{random.rand(9999)}\n)
    end.join)
    [file]
  end

  def self.run(logs)
    visits = Ikra.lines(logs).map_reduce(:+, lazy: true) do |line, out|
      fields = line.split
      out.emit([fields[5], fields[0]], 1)
    end
    visits.map_reduce(:+) { |((url, _ip), _count), out| out.emit(url, 1) }
  end
end

if $PROGRAM_NAME == __FILE__
  Comparison.run_on_files(PageViews, 20_000).top(5).each { |url, visitors| puts "#{url}: #{visitors} visitors" }
end
