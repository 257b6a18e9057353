# frozen_string_literal: true

module Ikra
  # The methods of Ruby's core classes on which Ikra's own Ruby code rests. A program that redefines one of them would
  # get other answers from parallel methods, chains and MDArrays, so it gets a CompileError.
  #
  # Not here: what kernels make of redefined methods, which inference knows (+pmap+ and +peach+ need no check).
  #
  # The check looks at the methods once in a process, at the first call that needs it. It calls as little as possible of
  # what may be redefined: no iterators, no Arrays, no arithmetic. Methods that other libraries extend in good faith are
  # not in the list, such as +Enumerable#sum+, +Range#each+ and +Integer#to_s+.
  module CoreMethods
    class << self
      # @raise [CompileError] where the program has redefined such a method
      def check = @whole ||= look

      # Whether these methods of a class are Ruby's own.
      def own?(type, names)
        names.all? do |name|
          method = type.instance_method(name)
          core?(method.owner) && internal?(method.source_location)
        end
      end

      private

      def look
        own(Array, :[], :[]=, :<<, :+, :==, :all?, :any?, :compact, :concat, :drop, :dup, :each, :each_index, :empty?, :first, :flatten)
        own(Array, :hash, :include?, :index, :join, :last, :length, :map, :pop, :product, :push, :reject, :reverse, :select, :shift, :size)
        own(Array, :sort, :sort_by!, :take, :to_a, :transpose, :uniq, :values_at, :zip)
        own(Enumerable, :each_cons, :each_slice, :each_with_index, :each_with_object, :inject, :map)
        own(Hash, :[], :[]=, :each, :empty?, :except, :fetch, :key?, :keys, :map, :merge, :store, :values)
        own(Integer, :%, :*, :+, :-, :/, :<, :<=, :==, :>, :>=, :downto, :negative?, :positive?, :succ, :times, :upto, :zero?)
        own(String, :+, :==, :[], :end_with?, :length, :size, :start_with?)
        own(Symbol, :==, :to_proc)
        own(Range, :begin, :end, :exclude_end?)
        own(Proc, :arity, :call, :parameters)
        own(Kernel, :block_given?, :freeze, :is_a?, :nil?, :raise, :respond_to?)
        own(Module, :===)
        own(Class, :new)
        true
      end

      # Goes over the names by calling itself, which calls no method of the program.
      def own(owner, name = (none = true), *more)
        return if none

        method = owner.instance_method(name)
        refuse(owner, name, method) unless core?(method.owner) && internal?(method.source_location)
        own(owner, *more)
      end

      def core?(owner)
        Array.equal?(owner) || Hash.equal?(owner) || Enumerable.equal?(owner) || Integer.equal?(owner) || String.equal?(owner) ||
          Symbol.equal?(owner) || Range.equal?(owner) || Proc.equal?(owner) || Kernel.equal?(owner) || Module.equal?(owner) ||
          Class.equal?(owner) || Comparable.equal?(owner) || Numeric.equal?(owner)
      end

      # Methods of Ruby's own that are written in Ruby are in files such as +<internal:kernel>+.
      def internal?(place)
        path, = place
        path.nil? || path.match?(/\A<internal:/)
      end

      def refuse(owner, name, method)
        path, line = method.source_location
        Kernel.instance_method(:raise).bind_call(self, CompileError, <<~TEXT.chomp)
          #{path}:#{line}: #{owner}##{name} is redefined here
          Reason: Ikra's own Ruby code calls it, as that of other libraries
          Instead: give the method another name, or refine the class in the files that need it
        TEXT
      end
    end
  end
  private_constant :CoreMethods
end
