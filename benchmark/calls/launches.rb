# frozen_string_literal: true

require "json"
require "tmpdir"

# What the driver itself takes to launch kernels in the run at hand, of which calls cannot be less (launch.cu). Not here: what is compared with it.
module Launches
  SOURCE = File.expand_path("launch.cu", __dir__)

  # Microseconds: a launch that nobody waits for (`queued`), with the wait (`waited`), and that of a kernel that does nothing (`empty`); nil where there is no nvcc.
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
