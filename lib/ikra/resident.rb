# frozen_string_literal: true

module Ikra
  # Notices Ruby's own reads and writes of objects whose ivars are columns on a device.
  #
  # A module, the watcher, is prepended once to each class of such objects, and to its ancestors, except Ruby's own
  # classes. Its methods do nothing while no scope of {Ikra.resident} is open, and are not shown by +method+ and
  # +instance_method+. Methods whose mere presence changes what other code does ({Shown}) exist only while scopes are
  # open.
  # @api private
  module Resident
    # Methods that read or write members and ivars of any object.
    OF_STRUCTS = (Struct.public_instance_methods(false) - %i[size length members]).freeze
    OF_OBJECTS = %i[
      instance_variable_get instance_variable_set instance_variable_defined? remove_instance_variable instance_variables dup clone freeze instance_exec instance_eval
    ].freeze
    # Names that can be written after `def`.
    WRITABLE = /\A([[:alpha:]_][[:alnum:]_]*[?!=]?|[+*\/%<>~!^&|-]|[+-]@|\*\*|<=|>=|==|!=|<=>|===|=~|!~|<<|>>|\[\]=?)\z/.freeze
    # Methods that are not watched: kernels do not know the objects on which they are called.
    LEFT_OUT = %i[initialize initialize_copy object_id __id__ __send__ singleton_method_added].freeze
    # Classes whose objects never change. Kernels write none of them, so Ruby may read them at any time.
    UNCHANGING = [NilClass, Range, Complex, Rational].freeze
    # Modules whose methods are not watched. Methods of {Parallel} run sections, which watch objects themselves.
    CORE = [Object, Kernel, BasicObject, Struct, Comparable, Enumerable, Parallel, Numeric, Hash, *UNCHANGING, *(defined?(Data) ? [Data] : [])].freeze

    @watched = {}.compare_by_identity
    # Owners that are watched completely. Work that was interrupted in the middle is done again.
    @whole = {}.compare_by_identity
    @watchers = {}.compare_by_identity
    @written = {}.compare_by_identity
    @lock = Lock.new

    class << self
      # Watches a class.
      #
      # @param owner [Class] the class of objects with columns
      # @param written [Boolean] whether a kernel writes some of them
      def watch(owner, written)
        return if UNCHANGING.include?(owner)

        @lock.synchronize do
          @written[owner] ||= written
          owner.ancestors.each { |ancestor| watch_one(ancestor) }
        end
      end

      # Watches methods that were added since. A single object may get methods from modules, too.
      def again(owner)
        uninterrupted do
          single = owner.singleton_class? && Ikra.__resident?
          next unless @watched[owner] || single

          Ikra.__methods_changed
          Ikra.__resident_changed if single
          @lock.synchronize { owner.ancestors.each { |ancestor| watch_one(ancestor) unless ancestor.singleton_class? && single } }
        end
      end

      # Watches the modules that an object is about to be extended by.
      def extended(modules)
        return unless Ikra.__resident?

        Ikra.__resident_read
        Ikra.__resident_changed
        modules.grep(Module).each { |mod| mod.ancestors.each { |ancestor| @lock.synchronize { watch_one(ancestor) } } }
      end

      # Notices a method that was added, or redefined, since its owner was watched.
      def added(owner, name)
        uninterrupted do
          watcher = @watched[owner]
          next if watcher.nil?

          Ikra.__methods_changed
          # A program's own method_added may have removed it.
          next if LEFT_OUT.include?(name) || !(owner.method_defined?(name) || owner.private_method_defined?(name))

          kind = %i[private protected].find { |visibility| owner.__send__(:"#{visibility}_instance_methods", false).include?(name) } || :public
          @lock.synchronize do
            unaliased = unalias(owner, name, kind)
            next watch_later(watcher, owner, name) unless open?

            # It may take other arguments than the method before.
            unaliased ? watcher.__send__(kind, name) : write(watcher, owner, { kind => [name] })
          end
        end
      end

      # Notices a method that was removed.
      def gone(owner, name)
        uninterrupted do
          watcher = @watched[owner]
          Ikra.__methods_changed
          forget(watcher, name) if watcher
        end
      end

      # Notices a singleton method of an object.
      def singled(object, name)
        uninterrupted do
          next unless Ikra.__resident?

          # The object has a class of its own now.
          Ikra.__resident_changed
          next if LEFT_OUT.include?(name)

          watcher = watcher()
          write(watcher, object.singleton_class, { public: [name] })
          object.singleton_class.prepend(watcher)
        end
      end

      # Whether any living Fiber has an open scope.
      def open? = Ikra.__resident_shown(0)

      # Runs a block with a scope open, which may be the only one.
      def with_scope
        opened = false
        uninterrupted do
          show(1)
          opened = true
        end
        yield
      ensure
        # If it was interrupted while it waited for others, it has opened nothing.
        uninterrupted { show(-1) } if opened
      end

      # Registers a module of Ikra as a watcher, which does not change what methods mean.
      def is_watcher(watcher)
        @watchers[watcher] = true
        Ikra.__watcher(watcher)
      end

      # Whether a module is a watcher.
      def watcher?(owner) = @watchers.key?(owner)

      # The method that a Method or UnboundMethod would be without watchers. In a scope it stays as it is, because it
      # may be called.
      def seen_through(method)
        (Method === method || UnboundMethod === method) && !Ikra.__resident? ? unwatched(method) || method : method
      end

      # Shows an object to +pp+ as if it were not watched. `yield` shows objects that have a way of their own.
      def pretty_print(object, printer)
        inspect, own = %i[inspect pretty_print].map { |name| unwatched(METHOD.bind_call(object, name)) }
        plain = inspect&.owner == Kernel && own&.owner == unwatched(Object.instance_method(:pretty_print))&.owner
        plain ? printer.pp_object(object) : yield
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

      # Runs the block of a scope. It may belong to a watched object.
      def within(block)
        around = Thread.current[:__ikra_inside]
        inside = {}.compare_by_identity
        inside.update(around) if around
        receiver = receiver(block)
        inside[receiver] = values(receiver) unless CORE.include?(CLASS.bind_call(receiver))
        Thread.current[:__ikra_inside] = inside
        yield
      ensure
        Thread.current[:__ikra_inside] = around
      end

      # Called before a section in a scope. Objects whose methods are running read and write their ivars unnoticed. So
      # this notes what they have changed until now.
      def entered(block)
        inside = Thread.current[:__ikra_inside]
        receiver = receiver(block)
        inside[receiver] ||= values(receiver) unless CORE.include?(CLASS.bind_call(receiver))
        Ikra.__resident_changed unless inside.all? { |object, seen| same?(seen, values(object)) }
      end

      # Called after the section, however it ended: writes to these objects what kernels changed in them.
      def left
        inside = Thread.current[:__ikra_inside]
        Ikra.__resident_read if inside.any? { |object, _| @written[CLASS.bind_call(object)] }
        inside.each_key { |object| inside[object] = values(object) }
      end

      private

      # Adds to the number of scopes. The methods of {Shown} exist as long as scopes are open.
      def show(more)
        @lock.synchronize do
          # The number is kept by Fiber. A Fiber that is abandoned in a scope never leaves it, and its number is dropped
          # with the Fiber.
          Ikra.__resident_shown(more)
          # A signal handler may open and close scopes in the middle of this.
          begin
            shown = open?
            SHOWN.each { |method| shown ? Singles.define_method(method.name, method) : forget(Singles, method.name) }
          end until shown == open?
        end
      end

      # Runs a block without interrupts: Timeout or Thread#raise wait until it is done. It is for calls that Ruby makes
      # only once, and for changes that must be undone.
      def uninterrupted(&block) = Thread.handle_interrupt(NEVER, &block)

      # Made in advance: an interrupt may come after any call of Ruby's own methods, also after the one that makes a
      # Hash.
      NEVER = { Object => :never }.freeze
      private_constant :NEVER

      # The receiver of a block. nil: the block of a Symbol or a Method has none.
      def receiver(block)
        block && uninterrupted do
          BINDING.bind_call(block).receiver
        rescue ArgumentError
          nil
        end
      end

      IVARS = Kernel.instance_method(:instance_variables)
      IVAR = Kernel.instance_method(:instance_variable_get)
      CLASS = Kernel.instance_method(:class)
      FROZEN = Kernel.instance_method(:frozen?)
      MEMBERS = Struct.instance_method(:to_a)
      BINDING = Proc.instance_method(:binding)
      METHOD = Kernel.instance_method(:method)
      PREPEND = Module.instance_method(:prepend)
      private_constant :IVARS, :IVAR, :CLASS, :FROZEN, :MEMBERS, :BINDING, :METHOD, :PREPEND

      # The first method after those of watchers, if there is one.
      def unwatched(method)
        method = method.super_method while method && @watchers[method.owner]
        method
      end

      def enter(object)
        inside = Thread.current[:__ikra_inside]
        seen = values(object)
        return [seen, false] if inside.nil? || inside.key?(object)

        inside[object] = seen
        [seen, true]
      end

      def leave(object, (seen, entered))
        inside = Thread.current[:__ikra_inside]
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
        return if @whole[owner] || @watchers[owner] || CORE.include?(owner)
        raise FrozenError.new("#{owner} is frozen, and Ikra.resident could not tell when Ruby looks at its objects: run over them outside", receiver: owner) if owner.frozen?

        watcher = @watched[owner] ||= watcher()
        # Work that a signal handler does in the middle of this is done twice.
        fill(watcher, owner)
        # Not by the Later of a superclass.
        PREPEND.bind_call(owner, watcher)
        owner.extend(Later)
        @whole[owner] = true
      end

      # Watches it when the next scope opens. Until then it may become private, which Ruby does not report.
      def watch_later(watcher, owner, name)
        forget(watcher, name)
        @whole.delete(owner)
      end

      def forget(watcher, name)
        watcher.__send__(:remove_method, name) if watcher.method_defined?(name, false) || watcher.private_method_defined?(name, false)
      rescue NameError => error
        # a signal's handler has removed it
        raise unless error.name == name && error.receiver.equal?(watcher)
      end

      def watcher
        Module.new.tap { |watcher| is_watcher(watcher) }
      end

      def fill(watcher, owner)
        own = %i[public protected private].to_h { |kind| [kind, owner.__send__(:"#{kind}_instance_methods", false) - LEFT_OUT] }
        if owner.is_a?(Class)
          asked = owner < Struct ? OF_STRUCTS + OF_OBJECTS : OF_OBJECTS
          own[:public] |= asked.select { |name| owner.method_defined?(name) } - own[:protected] - own[:private]
        end
        write(watcher, owner, own)
        watcher.include(Singles) if owner.is_a?(Class)
      end

      # Replaces an alias of a watching method. It would call itself through a method of that name that is written
      # later, and kernels would see only the watcher.
      def unalias(owner, name, kind)
        method = owner.instance_method(name)
        method = method.super_method while method && @watchers[method.owner] && method.original_name == name
        return unless method && method.original_name != name && method.source_location&.first == __FILE__

        method = unwatched(owner.instance_method(method.original_name))
        return unless method

        owner.__send__(:remove_method, name)
        owner.define_method(name, method)
        owner.__send__(kind, name)
        true
      end

      def write(watcher, owner, names)
        # The methods that are written anew.
        names.each_value { |list| list.each { |name| watcher.alias_method(name, name) if watcher.method_defined?(name, false) || watcher.private_method_defined?(name, false) } }
        writable, others = names.values.flatten.partition { |name| name.match?(WRITABLE) }
        watcher.module_eval(writable.map { |name| watching(owner, name) }.join("\n"), __FILE__, __LINE__)
        others.each do |name|
          watcher.define_method(name) do |*arguments, **options, &block|
            next super(*arguments, **options, &block) unless ::Ikra.__resident?

            ::Ikra::Resident.around(self) { super(*arguments, **options, &block) }
          end
        end
        names.each { |kind, list| watcher.__send__(kind, *list) unless list.empty? }
      end

      # As many parameters as the method has, so that its arity is the same.
      def parameters(method)
        required, others = method.parameters.partition.with_index { |(kind, _), i| kind == :req && method.parameters.first(i).all? { |before, _| before == :req } }
        return "..." unless (others.map(&:first) - %i[opt block]).empty?

        names = required.each_with_index.map { |(_, name), i| name || "__#{i}" }
        names << "*" if others.any? { |kind, _| kind == :opt }
        names.join(", ")
      end

      # The watcher's method for one of its owner's.
      def watching(owner, name)
        method = unwatched(owner.instance_method(name))
        slot, writes = (Ikra.__attribute(method) if method)
        return wrapper(name, parameters(method), "::Ikra::Resident.around(self) { super }") unless slot
        return wrapper(name, "value", "::Ikra.__resident_store(self, #{slot.inspect}, value) ? value : ::Ikra::Resident.around(self) { super }") if writes

        wrapper(name, "", "value = ::Ikra.__resident_slot(self, #{slot.inspect})\n  value.nil? ? super : value")
      end

      def wrapper(name, parameters, body) = "def #{name}(#{parameters})\n  return super unless ::Ikra.__resident?\n\n  #{body}\nend"
    end

    # Hooks by which watched classes and modules report later methods. They work even where a hook of the program raises
    # or is interrupted.
    module Later
      def include(*)
        super
      ensure
        Resident.again(self)
      end

      def prepend(*)
        super
      ensure
        Resident.again(self)
      end

      def instance_method(*) = Resident.seen_through(super)
      def public_instance_method(*) = Resident.seen_through(super)

      private

      def method_added(name)
        super
      ensure
        Resident.added(self, name)
      end

      def method_removed(name)
        super
      ensure
        Resident.gone(self, name)
      end

      def method_undefined(name)
        super
      ensure
        Resident.gone(self, name)
      end
    end

    # Hooks by which watched objects report their singleton methods.
    module Singles
      def extend(*modules)
        ::Ikra::Resident.extended(modules)
        super
      end

      # An object may have methods of these names with another meaning.
      def method(*, **) = ::Ikra::Resident.seen_through(super)
      def public_method(*, **) = ::Ikra::Resident.seen_through(super)

      private

      def singleton_method_added(name)
        super
      ensure
        Resident.singled(self, name)
      end
    end

    # Methods that show objects. They exist only in scopes, because +pp+ shows objects in another way that have an
    # +inspect+ other than Kernel's.
    module Shown
      def inspect
        return super unless ::Ikra.__resident?

        ::Ikra::Resident.around(self) { super }
      end

      def pretty_print(printer) = ::Ikra::Resident.around(self) { ::Ikra::Resident.pretty_print(self, printer) { super } }
    end

    # Methods that read ivars without calling the object's methods.
    module Dumps
      def dump(...)
        ::Ikra.__resident_read if ::Ikra.__resident?
        super
      end
    end
    SHOWN = Shown.instance_methods.map { |name| Shown.instance_method(name) }.freeze
    private_constant :Later, :Singles, :Shown, :Dumps, :SHOWN
    is_watcher(Singles)

    ::Marshal.singleton_class.prepend(Dumps)
  end

  class << self
    # Keeps the columns of objects where kernels run, from call to call. Ruby sees current values at any moment. A
    # method of a resident object that reads it first fetches what kernels changed. The next kernel sees what a method
    # changes. At the end everything is written back.
    #
    # Code that reads or writes ivars without the object's methods needs {Ikra.sync} before and after. Examples are C
    # code of gems, Method objects from before the scope, and a second +initialize+.
    #
    # @example
    #   Ikra.resident(actors) do
    #     1_000.times { actors.peach { |actor| actor.move(weather) } }
    #   end
    # @param _objects [Array] the objects of the scope, for readers of the program
    # @param arrays [Symbol, nil] +:fixed+: in the scope, the program changes only Arrays that it got from an object's
    #   method. Then Arrays need not be compared with their former contents at each call, which takes about 10 ns for
    #   each Array that kernels reach.
    # @yield sections in this Fiber leave their columns where they are; those of other Fibers and threads find objects
    #   as kernels left them
    # @return the block's value
    # @raise [DeviceError] when changes of kernels cannot be fetched any more
    def resident(*_objects, arrays: nil, &block)
      raise ArgumentError, "Ikra.resident needs a block" unless block
      raise ArgumentError, "arrays: #{arrays.inspect} is not :fixed" unless [nil, :fixed].include?(arrays)

      Resident.with_scope { __resident_within(arrays == :fixed, block) }
    end

    # @api private
    def __resident_within(fixed, block)
      Sections.wait_for_others
      __resident_open(fixed)
      begin
        result = Resident.within(block, &block)
        Sections.wait_for_others
        open = false
      ensure
        unless open == false
          begin
            Sections.current&.settle
          ensure
            __resident_close
          end
        end
      end
      __resident_close
      result
    end

    # Writes to objects what kernels changed in them, and lets the next kernel read them anew. It does nothing where no
    # scope of {Ikra.resident} is open.
    #
    # @return [void]
    def sync(*)
      __resident_read
      __resident_changed
      nil
    end

    # @api private
    def __section_entered(block) = Resident.entered(block)

    # @api private
    def __section_left = Resident.left

    # @api private
    def __watch(owner, written) = Resident.watch(owner, written)
  end
end
