# frozen_string_literal: true

require "monitor"

module Ikra
  # How Ruby's own reads and writes of objects are noticed whose ivars are columns on a device.
  #
  # A module is prepended to each class of such objects (and to what it inherits from and includes, Ruby's own classes but for), once. Its methods
  # do nothing while no scope of {Ikra.resident} is open.
  # @api private
  module Resident
    # What reads or writes members and ivars of whatever object it is asked of.
    OF_STRUCTS = (Struct.public_instance_methods(false) - %i[size length members]).freeze
    OF_OBJECTS = %i[instance_variable_get instance_variable_set remove_instance_variable inspect dup clone freeze instance_exec instance_eval].freeze
    # Names that can be written behind `def`.
    WRITABLE = /\A([[:alpha:]_][[:alnum:]_]*[?!=]?|[+*\/%<>~!^&|-]|[+-]@|\*\*|<=|>=|==|!=|<=>|===|=~|!~|<<|>>|\[\]=?)\z/.freeze
    # Of these the object is not one that kernels know.
    LEFT_OUT = %i[initialize initialize_copy object_id __id__ __send__ singleton_method_added].freeze
    CORE = [Object, Kernel, BasicObject, Struct, Comparable, Enumerable, NilClass, *(defined?(Data) ? [Data] : [])].freeze

    @watched = {}.compare_by_identity
    @written = {}.compare_by_identity
    @lock = Monitor.new

    class << self
      # @param owner [Class] of objects with columns
      # @param written [Boolean] whether a kernel writes some of them
      def watch(owner, written)
        @lock.synchronize do
          @written[owner] ||= written
          owner.ancestors.each { |ancestor| watch_one(ancestor) }
        end
      end

      # Methods that are there since it was watched.
      def again(owner)
        return unless @watched[owner]

        Ikra.__methods_changed
        @lock.synchronize { owner.ancestors.each { |ancestor| watch_one(ancestor) } }
      end

      # A method that is there since its owner was watched, or is another since.
      def added(owner, name)
        watcher = @watched[owner]
        return if watcher.nil?

        Ikra.__methods_changed
        return if LEFT_OUT.include?(name)

        kind = %i[private protected].find { |visibility| owner.__send__(:"#{visibility}_instance_methods", false).include?(name) } || :public
        @lock.synchronize do
          if unalias(owner, name, kind) then watcher.__send__(kind, name)
          elsif !watcher.method_defined?(name, false) && !watcher.private_method_defined?(name, false) then write(watcher, { kind => [name] })
          end
        end
      end

      # A method that is there no more.
      def gone(owner, name)
        watcher = @watched[owner]
        Ikra.__methods_changed
        watcher.__send__(:remove_method, name) if watcher && (watcher.method_defined?(name, false) || watcher.private_method_defined?(name, false))
      end

      # A method that one object alone was given.
      def singled(object, name)
        return unless Ikra.__resident?

        # it is of a class of its own now
        Ikra.__resident_changed
        return if LEFT_OUT.include?(name)

        watcher = Module.new
        write(watcher, { public: [name] })
        Ikra.__watcher(watcher)
        object.singleton_class.prepend(watcher)
      end

      # Runs a method of a watched object, and notes whether it changed the object.
      def around(object)
        Ikra.__resident_read
        seen = enter(object)
        begin
          yield
        ensure
          leave(object, seen)
        end
      end

      # Runs the block of a scope. It may belong to an object.
      def within(block)
        around = Thread.current.thread_variable_get(:ikra_resident)
        inside = {}.compare_by_identity
        inside.update(around) if around
        receiver = receiver(block)
        inside[receiver] = values(receiver) unless CORE.include?(CLASS.bind_call(receiver))
        Thread.current.thread_variable_set(:ikra_resident, inside)
        yield
      ensure
        Thread.current.thread_variable_set(:ikra_resident, around)
      end

      # Runs a section. Objects in the middle of whose methods it runs read and write their ivars with nobody noticing: what they changed
      # until then is noted, and what kernels changed in such objects is written to them.
      def section(block)
        inside = Thread.current.thread_variable_get(:ikra_resident)
        return yield unless inside

        receiver = receiver(block)
        inside[receiver] ||= values(receiver) unless CORE.include?(CLASS.bind_call(receiver))
        Ikra.__resident_changed unless inside.all? { |object, seen| same?(seen, values(object)) }
        begin
          yield
        ensure
          Ikra.__resident_read if inside.any? { |object, _| @written[CLASS.bind_call(object)] }
          inside.each_key { |object| inside[object] = values(object) }
        end
      end

      private

      # Whose a block is; nil: that of a Symbol or a Method is nobody's.
      def receiver(block)
        block && BINDING.bind_call(block).receiver
      rescue ArgumentError
        nil
      end

      IVARS = Kernel.instance_method(:instance_variables)
      IVAR = Kernel.instance_method(:instance_variable_get)
      CLASS = Kernel.instance_method(:class)
      FROZEN = Kernel.instance_method(:frozen?)
      MEMBERS = Struct.instance_method(:to_a)
      BINDING = Proc.instance_method(:binding)
      private_constant :IVARS, :IVAR, :CLASS, :FROZEN, :MEMBERS, :BINDING

      def enter(object)
        inside = Thread.current.thread_variable_get(:ikra_resident)
        seen = values(object)
        return [seen, false] if inside.nil? || inside.key?(object)

        inside[object] = seen
        [seen, true]
      end

      def leave(object, (seen, entered))
        inside = Thread.current.thread_variable_get(:ikra_resident)
        seen = inside[object] || seen if inside
        inside.delete(object) if inside && entered
        Ikra.__resident_changed unless same?(seen, after = values(object))
        inside[object] = after if inside&.key?(object)
      end

      def same?(before, after) = before.size == after.size && before.each_with_index.all? { |value, i| value.equal?(after[i]) }

      def values(object)
        seen = [FROZEN.bind_call(object)]
        IVARS.bind_call(object).each { |name| seen << name << IVAR.bind_call(object, name) }
        Struct === object ? seen.concat(MEMBERS.bind_call(object)) : seen
      end

      def watch_one(owner)
        return if @watched[owner] || @watched.value?(owner) || CORE.include?(owner) || owner == Singles

        @watched[owner] = watcher = Module.new
        fill(watcher, owner)
        Ikra.__watcher(watcher)
        owner.prepend(watcher)
        owner.extend(Later)
      end

      def fill(watcher, owner)
        own = %i[public protected private].to_h { |kind| [kind, owner.__send__(:"#{kind}_instance_methods", false) - LEFT_OUT] }
        if owner.is_a?(Class)
          asked = owner < Struct ? OF_STRUCTS + OF_OBJECTS : OF_OBJECTS
          own[:public] |= asked.select { |name| owner.method_defined?(name) } - own[:protected] - own[:private]
        end
        write(watcher, own)
        watcher.include(Singles) if owner.is_a?(Class)
      end

      # An alias of what stands before a method would call itself by way of a method of that name that is written later, and kernels would know nothing but what watches.
      def unalias(owner, name, kind)
        method = owner.instance_method(name)
        method = method.super_method while method && @watched.value?(method.owner) && method.original_name == name
        return unless method && method.original_name != name && method.source_location&.first == __FILE__

        method = owner.instance_method(method.original_name)
        method = method.super_method while method && @watched.value?(method.owner)
        return unless method

        owner.__send__(:remove_method, name)
        owner.define_method(name, method)
        owner.__send__(kind, name)
        true
      end

      def write(watcher, names)
        writable, others = names.values.flatten.partition { |name| name.match?(WRITABLE) }
        watcher.module_eval(writable.map { |name| wrapper(name) }.join("\n"), __FILE__, __LINE__)
        others.each do |name|
          watcher.define_method(name) do |*arguments, **options, &block|
            next super(*arguments, **options, &block) unless ::Ikra.__resident?

            ::Ikra::Resident.around(self) { super(*arguments, **options, &block) }
          end
        end
        names.each { |kind, list| watcher.__send__(kind, *list) unless list.empty? }
      end

      def wrapper(name) = "def #{name}(...)\n  return super unless ::Ikra.__resident?\n\n  ::Ikra::Resident.around(self) { super }\nend"
    end

    # Watched classes and modules tell what they are given later.
    module Later
      def include(*)
        super.tap { Resident.again(self) }
      end

      def prepend(*)
        super.tap { Resident.again(self) }
      end

      private

      def method_added(name)
        super
        Resident.added(self, name)
      end

      def method_removed(name)
        super
        Resident.gone(self, name)
      end

      def method_undefined(name)
        super
        Resident.gone(self, name)
      end
    end

    # Watched objects tell which methods they alone are given.
    module Singles
      def extend(*)
        super.tap { ::Ikra.__resident_changed if ::Ikra.__resident? }
      end

      private

      def singleton_method_added(name)
        super
        Resident.singled(self, name)
      end
    end

    # What reads ivars past the object's methods.
    module Dumps
      def dump(...)
        ::Ikra.__resident_read if ::Ikra.__resident?
        super
      end
    end
    private_constant :Later, :Singles, :Dumps

    ::Marshal.singleton_class.prepend(Dumps)
  end

  class << self
    # Keeps the columns of objects where kernels run, from call to call. Ruby sees current values at any moment: what reads a resident object by
    # its methods first fetches what kernels changed, and what changes it is seen by the next kernel. At the end everything is written back.
    #
    # What reads or writes ivars past the object's methods (C code of gems, Method objects from before the scope, a second
    # +initialize+) needs {Ikra.sync} before, and after.
    #
    # @example
    #   Ikra.resident(actors) do
    #     1_000.times { actors.peach { |actor| actor.move(weather) } }
    #   end
    # @param objects [Array] what the scope is for, for whoever reads the program
    # @param arrays [Symbol, nil] +:fixed+: the program changes no Array in the scope but those that it has from an object's method, and so they need not be
    #   compared with what they were at each call, which takes about 10 ns for each Array that kernels reach
    # @yield sections on this thread leave their columns where they are
    # @return what the block gives
    # @raise [DeviceError] when what kernels changed cannot be fetched any more
    def resident(*_objects, arrays: nil, &block)
      raise ArgumentError, "Ikra.resident needs a block" unless block
      raise ArgumentError, "arrays: #{arrays.inspect} is not :fixed" unless [nil, :fixed].include?(arrays)

      __resident_open(arrays == :fixed)
      begin
        result = Resident.within(block, &block)
        open = false
      ensure
        __resident_close unless open == false
      end
      __resident_close
      result
    end

    # Writes to objects what kernels changed in them, and lets the next kernel look at them anew. It does nothing where no scope of
    # {Ikra.resident} is open.
    #
    # @return [void]
    def sync(*)
      __resident_read
      __resident_changed
      nil
    end

    # @api private
    # A section, where a scope is open.
    def __section_watched(*arguments) = Resident.section(arguments[5]) { __section_now(*arguments) }

    # @api private
    def __watch(owner, written) = Resident.watch(owner, written)
  end
end
