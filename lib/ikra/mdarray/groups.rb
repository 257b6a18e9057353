# frozen_string_literal: true

module Ikra
  # Elements by groups. They are read where they are; no list is made of them.
  class MDArray
    # {Parallel#pmap_reduce} over the elements.
    #
    # @param combine (see Parallel#pmap_reduce)
    # @param reduce (see Parallel#pmap_reduce)
    # @param order (see Parallel#pmap_reduce)
    # @param lazy (see Parallel#pmap_reduce)
    # @param engine (see Parallel#pmap_reduce)
    # @yieldparam element
    # @yieldparam out [Emitter]
    # @return (see Parallel#pmap_reduce)
    def map_reduce(combine = nil, reduce: nil, order: :first, lazy: false, engine: nil, **options, &block)
      Ikra.__map_reduce(self, combine, reduce, order, lazy, { engine: engine, **options }, block)
    end

    # @return [Hash{Object => Integer}] how often each element occurs, in the order of first occurrences
    def tally(*counts)
      return super unless counts.empty?

      Ikra.__grouping(self) { |groups| groups.tally(self) } || Ikra.__tally(flat_list)
    end

    # @yieldparam element
    # @return [MDArray] the first element for each of the block's values; without a block each element once
    def uniq(&block)
      list = Ikra.__grouping(self) { |groups| groups.uniq(self, block) } || flat_list.uniq(&block)
      of_elements(list)
    end

    # @yieldparam element
    # @return [Hash{Object => MDArray}] elements by the block's values; without a block an Enumerator
    def group_by(&block)
      return flat_list.group_by unless block

      Ikra.__grouping(self) { |groups| groups.group_by(self, block) { |list| of_elements(list) } } ||
        flat_list.pgroup_by(&block).transform_values { |list| of_elements(list) }
    end

    private

    def of_elements(list) = MDArray.__of(dtype == :object ? list : Buffer.from_list(dtype, list), dtype, [list.size])

    # What a block emits for all elements, by the kernel that computes them.
    def emitted(block, form, options)
      over(:map_reduce, options, block) { |run, within| run.emitted(size, form, *within, base: base) }
    end
  end
end
