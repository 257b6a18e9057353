# frozen_string_literal: true

module Ikra
  class << self
    # Prints what Ikra finds on this machine, and how to add what is missing.
    #
    # @param output [IO]
    # @return [void]
    def doctor(output = $stdout)
      output.puts "Ikra #{VERSION}, Ruby #{RUBY_VERSION} (#{RUBY_PLATFORM})"
      %i[cpu cuda].each do |backend|
        architecture, trouble = __backend(backend)
        output.puts "#{backend}: #{trouble || "works (#{architecture})"}"
      end
      seen, all = __spread
      # What policy: :paper of Ikra.concurrently assumes.
      output.puts "cuda: blocks of a kernel spread over #{seen} of #{all} multiprocessors" if all
      directory, trouble = __cache
      output.puts "compiled kernels: #{trouble || "kept in #{directory}"}"
      output.puts "default backend: #{config.backend}"
      nil
    end
  end
end
