# frozen_string_literal: true

# The backends that this machine can run, found out without Ikra. A backend that wrongly says that it is absent must
# fail its examples, not skip them. `IKRA_BACKEND` restricts the list to one, and then its absence is an error.
# `SPEC_BACKENDS=reference,cpu` restricts it to some.
module Backends
  ALL = %i[reference cpu cuda_shim cuda].freeze

  class << self
    # The backends to test, as Symbols.
    def present
      @present ||= (wanted = wanted_backend) ? [wanted] : among.select { |backend| absence(backend).nil? }
    end

    # The reason for each backend that is not tested: a Hash of Symbol to String.
    def skipped
      (ALL - present).to_h { |backend| [backend, (absence(backend) if among.include?(backend)) || "left out by the environment"] }
    end

    def announce(output)
      output.puts "Backends tested: #{present.join(", ")}"
      skipped.each { |backend, reason| output.puts "*** NOT TESTED: #{backend} (#{reason}) ***" }
    end

    private

    # Those that may be tested.
    def among
      names = ENV.fetch("SPEC_BACKENDS", "").split(",")
      unknown = names - ALL.map(&:name)
      abort "SPEC_BACKENDS: #{unknown.join(", ")} not among #{ALL.join(", ")}" unless unknown.empty?
      names.empty? ? ALL : names.map(&:to_sym)
    end

    def wanted_backend
      name = ENV.fetch("IKRA_BACKEND", "").tr("-", "_")
      return if name.empty? || name == "auto"

      backend = ALL.find { |known| known.name == name } or abort "IKRA_BACKEND=#{name}: not one of #{ALL.join(", ")}"
      reason = absence(backend) and abort "IKRA_BACKEND=#{name}: #{reason}"
      backend
    end

    # Why this machine cannot run the backend, or nil where it can.
    def absence(backend)
      @absences ||= { cuda_shim: shim_absence, cuda: cuda_absence }
      @absences[backend]
    end

    def shim_absence
      "no g++ on the PATH" unless system("g++", "--version", out: File::NULL, err: File::NULL)
    end

    # A child process looks for devices: initialising CUDA here would not survive the fork of another example.
    def cuda_absence
      count = IO.popen([RbConfig.ruby, "-rfiddle", "-e", <<~RUBY], err: File::NULL, &:read)
        driver = Fiddle.dlopen("libcuda.so.1")
        initialised = Fiddle::Function.new(driver["cuInit"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT).call(0)
        exit 1 unless initialised.zero?
        count = Fiddle::Pointer.malloc(Fiddle::SIZEOF_INT, Fiddle::RUBY_FREE)
        Fiddle::Function.new(driver["cuDeviceGetCount"], [Fiddle::TYPE_VOIDP], Fiddle::TYPE_INT).call(count)
        print count[0, Fiddle::SIZEOF_INT].unpack1("i")
      RUBY
      "no CUDA device found" unless count.to_i.positive?
    end
  end

  # For example groups: `on_every_backend { it("…") { … backend … } }`.
  module Groups
    def on_every_backend(&examples)
      Backends.present.each do |name|
        context "on #{name}" do
          let(:backend) { name }
          class_exec(name, &examples)
        end
      end
    end
  end

  # For examples.
  module Examples
    def backends = Backends.present
  end
end
