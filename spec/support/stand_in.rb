# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# A machine with a simulated GPU: stand-ins for CUDA's driver, NVRTC and cuBLAS, which the core's tests use, too. They
# serve programs in processes of their own. They are compiled once, at the first request.
module StandIn
  CORE = File.expand_path("../../ext/ikra-core", __dir__)

  class << self
    # The folder with the libraries.
    def libraries
      @libraries ||= Dir.mktmpdir("ikra-stand-in").tap do |folder|
        owner = Process.pid
        at_exit { FileUtils.rm_rf(folder) if Process.pid == owner } # a child of `fork` that ends must leave it
        { "cuda.cpp" => %w[libcuda.so.1 libcuda.so], "nvrtc.cpp" => %w[libnvrtc.so.13 libnvrtc.so], "cublas.cpp" => %w[libcublas.so.13 libcublas.so] }.each do |source, names|
          command = %w[g++ -std=gnu++17 -O1 -w -fPIC -shared -pthread] + [File.join(CORE, "tests/stand_in", source), "-o", File.join(folder, names[0])]
          system(*command) or abort "#{source} does not compile"
          File.symlink(names[0], File.join(folder, names[1]))
        end
      end
    end

    # The environment of such a machine. `state` names its defect.
    def environment(folder, state: nil, libraries: self.libraries)
      {
        "LD_LIBRARY_PATH" => libraries, "STAND_IN" => state, "STAND_IN_SHIM" => File.join(CORE, "src/backend/cuda/shim.hpp"),
        "STAND_IN_LOG" => File.join(folder, "log"), "IKRA_CACHE_DIR" => File.join(folder, "cache"), "IKRA_BACKEND" => nil
      }
    end
  end
end
