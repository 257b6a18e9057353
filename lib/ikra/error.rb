# frozen_string_literal: true

module Ikra
  # Included in every exception of Ikra's own, so that one +rescue Ikra::Error+ catches all. An exception that a block
  # raises has Ruby's own class and Ruby's own message.
  module Error
  end

  # A block that Ikra cannot run. The message says what, where and why, and what to write instead.
  class CompileError < StandardError
    include Error
  end

  # Two elements touched the same slot, and one of them wrote it.
  class RaceError < StandardError
    include Error
  end

  # A driver, a device or a compiler is missing or failed.
  class DeviceError < StandardError
    include Error
  end

  # A section needs more memory than the device has. The message says what holds the memory.
  class DeviceMemoryError < DeviceError
    # The most holders that the message names.
    MAX_NAMED_HOLDERS = 8
    private_constant :MAX_NAMED_HOLDERS

    # @return [Array(String, Integer)] what held memory of the device, and how many bytes. Arrays of one kind and shape
    #   count together.
    attr_reader :holders

    def initialize(message = nil)
      @holders = Ikra.__holders
      super(message && [message, *shown].join("\n"))
    end

    private

    def shown
      return if holders.empty?

      named = holders.first(MAX_NAMED_HOLDERS).map { |what, bytes| "#{what} (#{bytes} bytes)" }
      others = holders.drop(MAX_NAMED_HOLDERS)
      named << "others (#{others.sum(&:last)} bytes)" unless others.empty?
      "Held on the device: #{named.join(", ")}"
    end
  end

  # An Integer in a kernel went beyond 64 bits.
  class IntegerOverflow < RangeError
    include Error
  end

  # A mistake in Ikra itself.
  class InternalError < StandardError
    include Error
  end

  # The element that raised, and its tick.
  Position = Struct.new(:index, :tick)

  # Extends an exception that a block raised.
  module Located
    # @return [Position] index of the element in the Array or Range, and number of the tick, both from 0
    attr_reader :ikra
  end

  class << self
    # @api private
    # The new value of a captured variable after one contribution, where it is no number that kernels combine.
    def __contributed(operator, left, right, local, part)
      case operator
      when "+" then left + right
      when "-" then left - right
      when "*" then left * right
      when "&" then left & right
      when "|" then left | right
      when "^" then left ^ right
      when "<" then left < right ? part : local
      when ">" then left > right ? part : local
      when "min" then [left, right].min
      when "max" then [left, right].max
      end
    end

    # @api private
    # The exception that +raise+ makes of its arguments. +source+ is a class. Where +args+ and +keywords+ are given,
    # they make an object of it.
    def __raised(source, args, keywords, message)
      source = source.new(*args, **keywords) if args
      exception = source.exception(*message)
      raise TypeError, "exception object expected" unless exception.is_a?(Exception)

      exception
    end

    # @api private
    def __locate(exception, index, tick, backtrace)
      exception.extend(Located)
      exception.instance_variable_set(:@ikra, Position.new(index, tick).freeze)
      exception.set_backtrace(backtrace)
    end
  end
end
