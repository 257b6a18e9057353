# frozen_string_literal: true

require_relative "sig"

unless Signatures.rbs?
  warn "*** NOT TESTED: calls against sig/ikra.rbs (this Ruby has no RBS) ***"
  return
end

# Checks calls of Ikra's public methods against sig/ikra.rbs, and which methods are called at all.
#
# `rbs test` cannot do this. It calls a method with a block of its own in place of the user's, and Ikra compiles what
# it is given: "kernels know only plain parameters of blocks: wrapped_block = proc do |*block_args, &block2|". Nor can
# it wrap `**`. So TracePoints watch the methods as they are, with RBS's own check of types. What blocks get and give
# is not checked, because kernels run them. Refinements import copies of these methods, which no TracePoint watches.
module Signatures
  # RBS's check would run an Enumerator to look at its elements, and so the operation.
  class TypeCheck < RBS::Test::TypeCheck
    def value(val, type) = type.is_a?(RBS::Types::ClassInstance) && get_class(type.name) == ::Enumerator ? ::Enumerator === val : super
  end

  # The calls of one method.
  class Watched
    attr_reader :described, :name

    def initialize(described, name)
      @described = described
      @name = name
      receiver = described.module.singleton_class? ? described.module : Object.const_get(described.type.to_s)
      @check = TypeCheck.new(self_class: receiver, builder: Signatures.builder, sample_size: 20, unchecked_classes: [])
    end

    def method = described.definition.methods.fetch(name)
    def to_s = "#{described}#{described.separator}#{name}"

    def errors(arguments, block, result)
      made = RBS::Test::ArgumentsReturn.return(arguments: arguments, value: result)
      trace = RBS::Test::CallTrace.new(method_name: name, method_call: made, block_calls: [], block_given: block)
      found = @check.overloaded_call(method, "#{described.separator}#{name}", trace, errors: [])
      found.map { |error| "#{RBS::Test::Errors.to_string(error)}, called with (#{arguments.map { |one| shown(one) }.join(", ")})#{" and a block" if block}, gave #{shown(result)}" }
    end

    private

    def shown(value) = value.inspect.then { |text| text.size > 100 ? "#{text[0, 100]}…" : text }
  end

  class Calls
    attr_reader :wrong

    def initialize
      @wrong = []
      @called = Set.new
      @watched = Hash.new { |known, mod| known[mod] = {} }
      @readers = Hash.new { |known, mod| known[mod] = [] }
      Signatures.described.each { |one| one.names.each { |name| watch(one, name) unless name == :initialize } }
      @points.each_value { |target, point| point.enable(target: target) }
      @raises = TracePoint.new(:raise) { |trace| read(trace.raised_exception) }
      @raises.enable
      # An attribute of a module has no method that gives the module.
      Signatures.described.each { |one| call(@readers[one.module], Object.const_get(one.type.to_s)) if one.module.singleton_class? }
    end

    def stop = [@raises, *@points.values.map(&:last)].each(&:disable)

    # Methods that have a signature and were never called.
    def left = [*@watched.values.flat_map(&:values), *@readers.values.flatten.reject { |one| one.name.end_with?("=") }].reject { |one| @called.include?(one) }.map(&:to_s)

    private

    def watch(one, name)
      return unless one.module.public_method_defined?(name)

      method = one.module.instance_method(name)
      # An attribute has no code. Its readers are called for each object that a method gives.
      return @readers[one.module] << Watched.new(one, name) if attribute?(one, name)

      @watched[one.module][name] = Watched.new(one, name)
      # Aliases have the code of one method.
      (@points ||= {})[[method.owner, method.original_name]] ||= [method, point(one.module)]
    end

    def attribute?(one, name) = one.definition.methods.fetch(name).defs.all? { |d| RBS::AST::Members::Attribute === d.member }

    def point(mod)
      TracePoint.new(:call, :return) do |trace|
        watched = @watched[mod][trace.callee_id] or next
        trace.event == :call ? enter(watched, trace) : leave(watched, trace)
      end
    end

    # Of this Fiber.
    def running = Thread.current[:__signatures] ||= []

    def enter(watched, trace)
      @called << watched
      running << [watched, *arguments(trace)]
    end

    def leave(watched, trace)
      called, arguments, block = running.pop
      called, arguments, block = running.pop until called.nil? || called.equal?(watched)
      # Where an exception or a `break` leaves the method, its result is nil here.
      return if called.nil? || trace.return_value.nil? || queued?(trace)

      errors = watched.errors(arguments, !block.nil?, trace.return_value)
      @wrong.concat(errors) unless errors.any? && breaks?(block)
      read(trace.return_value)
    end

    # Whether a block may give a method another result by `break`.
    def breaks?(block)
      block.is_a?(Proc) && RubyVM::AbstractSyntaxTree.of(block, keep_script_lines: true).source.include?("break")
    rescue ArgumentError
      false
    end

    # What stands for a result within Ikra.concurrently: a section, and what its own thread is given.
    QUEUED = [Ikra::Section, Ikra.const_get(:Submitted)].freeze
    private_constant :QUEUED

    # Whether a parallel method gave a section in place of its result.
    def queued?(trace) = QUEUED.any? { |one| trace.return_value.is_a?(one) } && !trace.self.is_a?(Ikra::Section)

    # Whether the method has a block that is no parameter.
    def yields?(trace) = trace.self.equal?(Ikra)

    # What a method was called with: arguments, and the block, if any.
    def arguments(trace)
      # A method like `shape` is called often.
      return [[], nil] if trace.parameters.empty? && !yields?(trace)

      keywords = {}
      locals = trace.binding
      block = locals.eval("block_given? || nil")
      # `item = (none = true)`: where +none+ is true, there is no +item+.
      absent = (locals.local_variables - trace.parameters.map(&:last)).any? { |name| locals.local_variable_get(name).equal?(true) }
      given = trace.parameters.flat_map do |kind, name|
        value = locals.local_variable_get(name) if name && !%i[* ** &].include?(name)
        case kind
        when :opt then absent && value.equal?(true) ? [] : [value]
        when :req then [value]
        when :rest then value || []
        when :key, :keyreq then (keywords[name] = value; [])
        when :keyrest then (keywords.update(value || {}); [])
        else (block = value; [])
        end
      end
      given << keywords unless keywords.empty?
      [given, block]
    end

    # Calls the readers of an object, and those of what they give. `around`: Arrays that contain it.
    def read(value, around = [])
      if value.instance_of?(Array) && value.size < 100
        return if around.any? { |one| one.equal?(value) }

        return value.each { |one| read(one, [*around, value]) }
      end

      @readers.each { |mod, readers| call(readers, value) if mod === value }
    end

    def call(readers, object)
      readers.reject { |reader| reader.name.end_with?("=") }.each do |reader|
        given = object.public_send(reader.name)
        @called << reader
        @wrong.concat(reader.errors([], false, given))
        read(given)
      end
    end
  end
end

RSpec.configure do |config|
  calls = nil
  config.before(:suite) { calls = Signatures::Calls.new }
  config.after do
    wrong = calls.wrong.uniq
    calls.wrong.clear
    raise "sig/ikra.rbs says another thing:\n#{wrong.join("\n")}" unless wrong.empty?
  end
  config.after(:suite) do
    calls&.stop
    raise "not called, so not compared with sig/ikra.rbs: #{calls.left.join(", ")}" if ENV["IKRA_SIGNATURES"] == "all" && calls.left.any?
  end
end
