# frozen_string_literal: true

module Ikra
  # A typed array whose bytes are on the host, on a device, or on both. {MDArray} stores its elements in it. In kernels
  # it is an Array of numbers, or of true and false.
  #
  # @!method self.new(dtype, length)
  #   Zeros (or +false+), which take no memory before their first use.
  #   @param dtype [Symbol] +:i64+, +:i32+, +:u8+, +:f64+, +:f32+ or +:bool+
  # @!method self.kind(array)
  #   @return [Symbol, nil] +:i64+, +:f64+ or +:bool+, where all elements are Integers, Floats, or true and false
  # @!method self.from_list(dtype, array)
  #   @raise [RangeError, TypeError, FloatDomainError] for an element that does not fit, with its index
  # @!method self.from_bytes(dtype, string)
  #   A buffer of the bytes of elements, in the machine's own byte order.
  # @!method to_list(from = 0, count = size - from)
  #   @return [Array]
  # @!method to_bytes(from = 0, count = size - from)
  #   @return [String]
  # @!method [](index)
  #   An element. Where only the device has the contents, just this element is copied.
  # @!method []=(index, value)
  # @!method store_bytes(from, string)
  # @!method gather(offset, shape, strides)
  #   A copy of the elements of a part, one after the other, on the host.
  #   @return [Buffer]
  # @!method store_part(source, offset, shape, strides)
  #   Writes another buffer's elements to a part of this one, in place where the contents are not shared.
  #   @return [Boolean] false: nothing is written, because a kernel does it better
  # @!method take_over(other)
  #   Shares the contents of another buffer, of the same kind and size, from now on.
  # @!method follow(earlier)
  #   Says that this buffer has the new elements of an array that had the earlier buffer. Should their computation fail,
  #   this buffer gets the earlier contents back, once the exception was raised.
  # @!method may_come_back?
  #   @return [Boolean] whether it may yet get its earlier contents back
  # @!method poisoned?
  #   Waits until the outcome is known, and raises nothing.
  #   @return [Boolean] whether the computation of the contents failed
  # @!method copy
  #   A new buffer with the same contents. They are copied when one of the two is written.
  #   @return [Buffer]
  # @!method where
  #   @return [Symbol, nil] +:host+, +:device+, +:both+; nil where all elements are zero and no memory was allocated yet
  # @!method sync
  #   Waits until the contents are computed. They stay where they are.
  # @!method free
  #   Gives the memory back now, and does not wait for the GC. The buffer cannot be used any more.
  # @api private
  class Buffer
    def inspect
      freed? ? "#<#{self.class} freed>" : "#<#{self.class} #{size} #{dtype}, #{where || "all zero"}>"
    end

    def initialize_copy(_other) = raise(TypeError, "copy a buffer with Buffer#copy")
  end

  class << self
    # In kernels: an element of a list, which the host knows to exist.
    # @api private
    def __at(list, index) = list[index]

    # In kernels: a write to an element of a buffer. The host knows that it exists, and that nothing else writes it.
    # @api private
    def __put(list, index, value) = list[index] = value

    # @!method __single(value)
    #   The nearest Float of 32 bits; in kernels too.
    #   @api private

    # The memory that Ikra holds, in bytes.
    #
    # @example
    #   Ikra.memory
    #   # => {:host=>0, :device=>134217728, :arrays=>1, :resident=>0, :reserved=>134217728, :limit=>nil,
    #   #     :page_locked=>0, :kept=>0}
    # @return [Hash{Symbol => Integer, nil}] these entries:
    #
    #   - +:host+ and +:device+: contents of arrays there
    #   - +:arrays+: the number of arrays
    #   - +:resident+: columns that scopes of {Ikra.resident} keep on the device
    #   - +:reserved+: all that this process has allocated on the device
    #   - +:limit+: the limit of that, by +memory_limit+
    #   - +:page_locked+: memory of the host for large arrays that go to the device or come from it
    #   - +:kept+: memory of the host that is kept for the next of these
    def memory
      %i[host device arrays resident reserved limit page_locked kept].zip(__memory).to_h
    end

    # @api private
    # The holders of the device's memory, the greatest first: arrays of one shape and kind together, then memory of no
    # array.
    #
    # @return [Array(String, Integer)] the holder, and bytes
    def __holders
      shapes = {}.compare_by_identity
      ObjectSpace.each_object(MDArray) { |array| array.__shown_by(shapes) }
      arrays = Hash.new { |known, key| known[key] = [0, 0] }
      ObjectSpace.each_object(Buffer) do |buffer|
        next if buffer.freed? || !%i[device both].include?(buffer.where)

        entry = arrays["#{buffer.dtype} #{(shapes[buffer] || [buffer.size]).join("×")}"]
        entry[0] += 1
        entry[1] += buffer.bytesize
      end
      lines = arrays.sort_by { |_, (_, bytes)| -bytes }.map { |what, (count, bytes)| [count == 1 ? what : "#{count} of #{what}", bytes] }
      memory = self.memory
      others = memory[:reserved] - memory[:device] - memory[:resident]
      lines << ["columns of resident objects", memory[:resident]] if memory[:resident].positive?
      lines << ["launches, and what is kept to be used again", others] if others.positive?
      lines
    end
  end

  # Moves arrays and objects to the host before a fork, because a child process cannot read its parent's device.
  # @api private
  module Forking
    def _fork
      Ikra.__resident_read if Ikra.__resident?
      Ikra.__before_fork
      super
    end
  end
  Process.singleton_class.prepend(Forking)
  private_constant :Forking
  # Background compilation uses a library that would be unloaded meanwhile.
  at_exit { Ikra.__before_exit }
end
