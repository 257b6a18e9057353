# frozen_string_literal: true

module Ikra
  # Options and their defaults. Each can be given per call (+array.pmap(backend: :cpu) { … }+), in {Ikra.configure}, and
  # as an environment variable (+IKRA_BACKEND=cpu+), which is read when Ikra is loaded.
  #
  # [+backend+] the machine that runs blocks. +:auto+, the default, takes a GPU where there is one and the work is worth
  #   it, else the CPU. The others are +:cpu+, +:cuda+, +:reference+ (a slow interpreter, to compare with) and
  #   +:cuda_shim+ (the GPU's code on the CPU, for tests).
  # [+overflow+] +:raise+ an IntegerOverflow when an Integer leaves 64 bits, or +:wrap+.
  # [+fast_math+] +true+ lets CUDA contract and approximate Float arithmetic.
  # [+blas+] +true+: a library multiplies large matrices of Floats, on a GPU cuBLAS where it is installed. +false+:
  #   Ikra's own kernel does, with the bits of a loop on every machine.
  # [+precision+] +:f64+, or +:f32+. With +:f32+, arguments and results of methods of numbers, and of functions of Math,
  #   are rounded to 32 bits in blocks. GPUs compute in 32 bits where that gives the same. Expressions of MDArrays
  #   without a block do not change.
  # [+check+] +nil+, +:races+ or +:associative+. +:races+ runs sections in the interpreter. It raises a RaceError where
  #   two elements of one tick touch the same slot, and one of them writes it. +:associative+ tries blocks of +preduce+
  #   and +pscan+, and the +combine+ of +pmap_reduce+, on some elements in both orders first. It raises an ArgumentError
  #   where that makes a difference.
  # [+unsupported+] +:raise+ a CompileError for a block that Ikra cannot run, or run it as plain +:ruby+, with a
  #   warning.
  # [+block_size+] threads per block, or elements per chunk on the CPU: a hint that changes no result.
  # [+blocks+] blocks per launch: a hint that no backend takes yet.
  # [+memory_limit+] bytes of device memory that the process may hold, launches included; not per call.
  #
  # The variable +IKRA_DUMP=ir,passes,cuda,clif+ is no option: it writes the text of each new kernel to stderr, or to
  # files of the folder +IKRA_DUMP_TO+.
  class Config
    # Every option with its default, in the order of the list above.
    DEFAULTS = { backend: :auto, overflow: :raise, fast_math: false, blas: true, precision: :f64, check: nil, unsupported: :raise, block_size: nil, blocks: nil, memory_limit: nil }.freeze

    DEFAULTS.each_key do |key|
      define_method(key) { @values.fetch(key) }
      define_method(:"#{key}=") { |value| set(key, value) }
    end

    def initialize
      @values = DEFAULTS.dup
    end

    # @return [Hash] every option with its value
    def to_h = @values.dup

    # @api private
    def self.read_environment
      DEFAULTS.each_key do |key|
        value = ENV.fetch("IKRA_#{key.upcase}", "")
        Ikra.config.__send__(:set, key, parse(value)) unless value.empty?
      end
      Ikra.__dump(ENV.fetch("IKRA_DUMP", ""), ENV.fetch("IKRA_DUMP_TO", nil))
    end

    # @api private
    def self.parse(text)
      case text
      when "true" then true
      when "false" then false
      when /\A\d+\z/ then text.to_i
      else text.tr("-", "_").to_sym
      end
    end
    private_class_method :parse

    private

    def set(key, value)
      Ikra.__configure(key, value)
      @values[key] = value.is_a?(String) ? value.tr("-", "_").to_sym : value
    end

    def method_missing(name, *)
      return super unless name.end_with?("=")

      raise ArgumentError, "unknown option #{name[0..-2]}: Ikra's options are #{DEFAULTS.keys.sort.join(", ")}"
    end

    def respond_to_missing?(*) = false
  end

  class << self
    # @return [Config] the defaults of all calls
    def config
      @config ||= Config.new
    end

    # Changes the defaults of all calls.
    #
    # @example
    #   Ikra.configure { |c| c.backend = :cpu }
    # @yieldparam config [Config]
    # @return [Config]
    # @raise [ArgumentError] for an unknown option or value; the message names the known ones
    def configure
      yield config if block_given?
      config
    end

    # The receiver of warnings. With nil (the default) Ikra calls Ruby's own +warn+.
    # @return [Logger, nil]
    attr_accessor :logger

    # @api private
    def __warn(message)
      logger ? logger.warn(message) : Kernel.warn(message, category: nil)
    end
  end
end
