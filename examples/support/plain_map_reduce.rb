# frozen_string_literal: true

# MapReduce and its sources without Ikra: what stands in for methods of Ikra.
module PlainMapReduce
  # Lines or slices of bytes.
  class Records < Array
    def map_reduce(combine = nil, reduce: nil, order: :first, lazy: false, &block)
      Ikra.__map_reduce(self, combine, reduce, order, lazy, {}, block)
    end
  end

  # Collects pairs.
  class Emitter
    attr_reader :pairs

    def initialize
      @pairs = []
    end

    def emit(key, value)
      @pairs << [key, value]
      self
    end
  end

  def lines(files, chomp: false) = Records.new(Array(files).flat_map { |file| File.foreach(file, chomp: chomp).to_a })

  def bytes(files, count) = Records.new(Array(files).flat_map { |file| File.binread(file).bytes.each_slice(count).to_a })

  def __map_reduce(source, combine, reduce, order, lazy, _options, block, _reduces = nil)
    emitter = Emitter.new
    source.each { |element| block.call(element, emitter) }
    found = emitter.pairs
    if combine || reduce
      groups = found.group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
      groups.transform_values! { |values| [values.reduce(&combine)] } if combine
      found = groups.to_h { |key, values| [key, reduce ? reduce.call(key, values) : values.first] }
    end
    found = found.sort.to_h if order == :key
    lazy ? Ikra::Groups.new(found) : found
  end
end
