# frozen_string_literal: true

module Ikra
  # How Ruby's own reads and writes of objects are noticed whose ivars are columns on a device.
  #
  # A module is prepended to each class of such objects (and to what it inherits from and includes, Ruby's own classes but for), once. Its methods
  # do nothing while no scope of {Ikra.resident} is open.
  # @api private
  module Resident
    # What Struct and Kernel have that reads members and ivars, or writes them.
    OF_STRUCTS = { read: %i[[] to_a deconstruct to_h each each_pair values values_at select filter dig == eql? hash], write: %i[[]=] }.freeze
    OF_OBJECTS = { read: %i[instance_variable_get inspect dup clone], write: %i[instance_variable_set remove_instance_variable] }.freeze
    # Of these the object is not one that kernels know.
    # Names that can be written behind `def`; others, which `define_method` has made, go unnoticed.
    WRITABLE = /\A([[:alpha:]_][[:alnum:]_]*[?!=]?|[+*\/%<>~!^&|-]|[+-]@|\*\*|<=|>=|==|!=|<=>|===|=~|!~|<<|>>|\[\]=?)\z/.freeze
    LEFT_OUT = %i[initialize initialize_copy method_missing respond_to_missing? object_id __id__ __send__].freeze
    CORE = [Object, Kernel, BasicObject, Struct, Comparable, Enumerable, *(defined?(Data) ? [Data] : [])].freeze

    @watched = {}.compare_by_identity
    @lock = Mutex.new

    class << self
      # @param owner [Class] of objects with columns
      def watch(owner)
        @lock.synchronize do
          (owner.ancestors - CORE).each_with_index do |ancestor, nearest|
            next if @watched[ancestor] || @watched.value?(ancestor)

            @watched[ancestor] = watcher = Module.new
            fill(watcher, ancestor, kernels: nearest.zero?)
            Ikra.__watcher(watcher)
            ancestor.prepend(watcher)
          end
        end
      end

      # Runs a method of a watched object, and notes whether it changed the object.
      def around(object)
        Ikra.__resident_read
        before = values(object)
        begin
          yield
        ensure
          after = values(object)
          same = before.size == after.size && before.each_with_index.all? { |value, i| value.equal?(after[i]) }
          Ikra.__resident_changed unless same
        end
      end

      private

      def values(object)
        names = Kernel.instance_method(:instance_variables).bind_call(object)
        ivars = names.flat_map { |name| [name, Kernel.instance_method(:instance_variable_get).bind_call(object, name)] }
        object.is_a?(Struct) ? ivars.concat(Struct.instance_method(:to_a).bind_call(object)) : ivars
      end

      def fill(watcher, owner, kernels:)
        own = %i[public protected private].to_h { |kind| [kind, owner.__send__(:"#{kind}_instance_methods", false) - LEFT_OUT] }
        if kernels
          tables = owner.is_a?(Class) && owner < Struct ? [OF_STRUCTS, OF_OBJECTS] : [OF_OBJECTS]
          own[:public] |= tables.flat_map { |table| table.values.flatten }.select { |name| owner.method_defined?(name) }
        end
        text = own.values.flatten.map { |name| wrapper(name) }.join("\n")
        watcher.module_eval(text, __FILE__, __LINE__)
        own.each { |kind, names| watcher.__send__(kind, *names.grep(WRITABLE)) unless names.empty? }
      end

      def wrapper(name)
        return "" unless name.match?(WRITABLE)

        "def #{name}(...)\n  return super unless ::Ikra.__resident?\n\n  ::Ikra::Resident.around(self) { super }\nend"
      end
    end
  end

  class << self
    # Keeps the columns of objects where kernels run, from call to call. Ruby sees current values at any moment: what reads a resident object by
    # its methods first fetches what kernels changed, and what changes it is seen by the next kernel. At the end everything is written back.
    #
    # What reads or writes ivars past the object's methods (C code of gems, say) needs {Ikra.sync} before, and after.
    #
    # @example
    #   Ikra.resident(actors) do
    #     1_000.times { actors.peach { |actor| actor.move(weather) } }
    #   end
    # @param objects [Array] what the scope is for, for whoever reads the program
    # @yield sections on this thread leave their columns where they are
    # @return what the block gives
    # @raise [DeviceError] when what kernels changed cannot be fetched any more
    def resident(*_objects)
      raise ArgumentError, "Ikra.resident needs a block" unless block_given?

      __resident_open
      begin
        result = yield
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
    def __watch(owner) = Resident.watch(owner)
  end
end
