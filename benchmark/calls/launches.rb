# frozen_string_literal: true

require "json"
require "tmpdir"

# The driver's own time to launch kernels (launch.cu), in this run. Calls cannot take less. Not here: what is compared
# with it.
module Launches
  SOURCE = File.expand_path("launch.cu", __dir__)

  # Microseconds of a launch without a wait (`queued`), with the wait (`waited`), and with the wait for an empty kernel
  # (`empty`). nil where there is no nvcc.
  def self.measured(bench)
    Dir.mktmpdir do |directory|
      built = File.join(directory, "launch")
      unless bench.build(built, [SOURCE], "nvcc", "-O3", "-arch=native", SOURCE, "-o", built)
        bench.note("nvcc is not installed: what the driver takes was not measured")
        next
      end

      JSON.parse(IO.popen([built], &:read), symbolize_names: true).each { |how, taken| bench.record("driver", how.to_s, { microseconds: taken }) }
    end
  end
end
