# frozen_string_literal: true

module Ikra
  # The new values of a captured Hash into which a section's block accumulates, until they are written.
  #
  # The section gives all updates: for each key, in the order of first updates, the values of its updates in order. What
  # Ruby's loop would have made of them is computed here, beside the Hash. So the Hash stays as it is where that raises.
  # @api private
  class CapturedHash
    # What an update makes of what is there and the new value. {SAME}: it stores nothing.
    STEPS = {
      "+" => ->(there, value) { there + value },
      "-" => ->(there, value) { there - value },
      "&" => ->(there, value) { there & value },
      "|" => ->(there, value) { there | value },
      "min" => ->(there, value) { [there, value].min },
      "max" => ->(there, value) { [there, value].max },
      "v min" => ->(there, value) { [value, there].min },
      "v max" => ->(there, value) { [value, there].max },
      "compact min" => ->(there, value) { [there, value].compact.min },
      "compact max" => ->(there, value) { [there, value].compact.max },
      "v compact min" => ->(there, value) { [value, there].compact.min },
      "v compact max" => ->(there, value) { [value, there].compact.max },
      "=" => ->(_, value) { value },
      "||=" => ->(there, value) { there ? SAME : value },
      "v < h" => ->(there, value) { value < there ? value : SAME },
      "v > h" => ->(there, value) { value > there ? value : SAME },
      "v <= h" => ->(there, value) { value <= there ? value : SAME },
      "v >= h" => ->(there, value) { value >= there ? value : SAME },
      "h < v" => ->(there, value) { there < value ? value : SAME },
      "h > v" => ->(there, value) { there > value ? value : SAME },
      "h <= v" => ->(there, value) { there <= value ? value : SAME },
      "h >= v" => ->(there, value) { there >= value ? value : SAME }
    }
    STEPS.keys.grep(/[<>]/) do |word|
      compared = STEPS[word]
      STEPS["nil or #{word}"] = ->(there, value) { there.nil? ? value : compared.call(there, value) }
    end
    STEPS.freeze
    # Says that an update leaves what is there.
    SAME = Object.new.freeze
    # What blocks for defaults may do, as instructions of Ruby's virtual machine.
    HARMLESS = /\A(put(nil|object.*|(chilled)?string)|new(array|hash)|dup.*|pop|topn.*|setn.*|opt_(aset|length|size|plus|minus|mult)|leave|nop)\z/.freeze
    INTEGERS = (-2**63...2**63).freeze
    NEVER = { Object => :never }.freeze
    INTEGER_OR_FLOAT = ->(value) { value.is_a?(Integer) || value.is_a?(Float) }
    # Updates that add.
    SUMS = %w[+ - +-].freeze
    private_constant :STEPS, :SAME, :HARMLESS, :INTEGERS, :NEVER, :SUMS, :INTEGER_OR_FLOAT

    class << self
      # Prepares the new values of a Hash.
      #
      # @param name [String] the captured variable
      # @param way [Array] how the block updates it; whether it takes a literal for nil and false, too; and that literal
      # @param pairs [Array] a word, and what it says of keys and values. "groups": each key once; the values of all
      #   updates, those of a key together; and where those of each key begin. "order": those of all updates, in order.
      #   "totals": each key once, and what its values come to; sums are not rounded.
      # @param changes [Array<Boolean>] whether the section changes objects, and whether Arrays; whether objects stay on
      #   the device
      # @return [CapturedHash, String, nil] a String says why the Hash cannot be accumulated into. nil: only with all
      #   updates in order is the answer Ruby's.
      def prepared(hash, name, way, pairs, changes)
        given, keys, values, starts = pairs
        catch(self) do
          made = new(hash, name, way, changes)
          keys = Reducing.list(keys)
          made.check_keys(keys)
          case given
          when "order" then made.by_order(keys, Reducing.list(values))
          when "totals" then made.by_total(keys, values)
          else made.by_group(keys, values, starts)
          end
        end
      end

      # Whether no two change one object.
      def apart?(hashes)
        touched = hashes.flat_map(&:touched)
        touched.size == distinct(touched).size
      end

      # Each object once.
      def distinct(objects) = objects.each_with_object({}.compare_by_identity) { |object, found| found[object] = true }.keys
    end

    def initialize(hash, name, way, changes)
      CoreMethods.check
      @hash = hash
      @name = name
      @word, missing = way
      @has_seed = !missing.nil?
      @falsy, @seed = missing
      @objects_change, @arrays_change, @stays = changes
      @all = nil
      @stores = []
      @appends = []
      refuse("compares keys by identity") if hash.compare_by_identity?
      refuse("has methods [] and []= that are not Ruby's own") unless own?(Hash, :[]) && own?(Hash, :[]=)
      refuse("has methods fetch and store that are not Ruby's own") unless %i[fetch store key?].all? { |name| own?(Hash, name) }
      # A block for defaults may set keys itself. It gets a copy.
      @seen = asks_default? ? hash.dup : hash
      check_default if asks_default?
    end

    # What is changed: the Hash, and Arrays in it.
    attr_reader :touched

    # Ruby's loop would have asked each key at its own time. So no key may depend on what the section changes.
    def check_keys(keys)
      return unless @objects_change || @arrays_change
      return if [keys, @hash.keys].all? { |list| list.all? { |key| lasts?(key) } }

      refuse("has keys that are compared by what is in them, while the section may change that")
    end

    def by_group(keys, values, starts)
      return appended(keys, Reducing.list(values), Reducing.list(starts)) if @word.end_with?("<<")

      before = @word == "=" ? [] : before_all(keys)
      made = sums(before) { |negates| Ikra.__hash_sums(before, values, starts, negates) } || []
      if made.empty? || made.include?(nil)
        values = Reducing.list(values)
        places = Reducing.list(starts)
        keys.each_with_index do |key, group|
          made[group] ||= folded(before[group], values, places[group]...places[group + 1], key)
        end
      end
      store_all(keys, made)
      done
    end

    # The kernel has left out values that are not beyond the Hash's default. Only of numbers is it sure that a total
    # gives what its values give one after the other.
    def by_total(keys, totals)
      throw(self.class, nil) unless beyond_default?
      before = before_all(keys)
      made = sums(before) { |negates| Ikra.__hash_totals(before, totals, negates) }
      made ||= keys.each_index.map { |at| with_total(keys[at], before[at], totals[at]) } unless SUMS.include?(@word)
      throw(self.class, nil) if made.nil? || made.include?(nil)

      store_all(keys, made)
      done
    end

    def by_order(keys, values)
      @seen = @hash.dup if @seen.equal?(@hash)
      keys.each_with_index do |key, index|
        value = values[index]
        if @word.end_with?("<<")
          @appends << [list(key), [value]]
        else
          made = step(there(key), value)
          @seen[key] = made unless SAME.equal?(made)
        end
      end
      done
    end

    # Writes the new values, all or none.
    def write
      Thread.handle_interrupt(NEVER) do
        write_all if @all
        @stores.each { |key, value| @hash[key] = value }
        @appends.each { |list, values| list.concat(values) }
      end
    end

    private

    def refuse(why) = throw(self.class, "is a Hash that #{why}")

    # Whether the section does not change which keys a key is equal to.
    def lasts?(key)
      case key
      when Integer, Float, Rational, Complex, Symbol, String, nil, true, false then true
      when Array then !@arrays_change && key.all? { |part| lasts?(part) }
      else %i[hash eql?].all? { |name| Kernel == key.class.instance_method(name).owner }
      end
    end

    def own?(owner, method)
      found = owner.instance_method(method)
      found.owner == owner && found.source_location.nil?
    end

    # Whether a block for defaults runs.
    def asks_default? = !@hash.default_proc.nil? && (!@has_seed || @falsy)

    def check_default
      # Methods in C have no code.
      code = RubyVM::InstructionSequence.of(@hash.default_proc)
      harmless = code&.to_a&.last&.grep(Array)&.all? do |name, *operands|
        name.to_s.match?(HARMLESS) || name == :getlocal_WC_0 || (name == :getlocal && operands.last == 0)
      end
      refuse("has a block for defaults which does more than give or store a new value") unless harmless
    end

    # What is there for a key, or what stands for it.
    def there(key) = @has_seed && !@falsy ? @seen.fetch(key, @seed) : or_seed(@seen[key])

    def or_seed(there) = @falsy ? there || @seed : there

    # What is there for each key before its first update.
    def before_all(keys)
      same = @hash.empty? && @seen.equal?(@hash) && !keys.empty?
      same ? Array.new(keys.size, there(keys.first)) : keys.map { |key| before(key) }
    end

    # The same for one key. A block for defaults may ask how many keys there are.
    def before(key)
      return there(key) if @seen.equal?(@hash)

      throw(self.class, nil) if @word.match?(/[<>]|\A\|\|=\z/)
      @seen[key] = there(key)
    end

    def store(key, value)
      @seen.equal?(@hash) ? @stores << [key, value] : @seen[key] = value
    end

    # Whether a value that is not beyond the default is stored nowhere.
    def beyond_default?
      return true unless @word.match?(/\A[vh] [<>]/)

      greatest = %w[v>h h<v].include?(@word.delete(" ="))
      @hash.each_value.all? { |there| INTEGER_OR_FLOAT === there && (greatest ? there >= @hash.default : there <= @hash.default) }
    end

    # Stores a value for each of different keys, or {SAME}.
    def store_all(keys, values)
      if @hash.empty? && @seen.equal?(@hash) && values.none? { |value| SAME.equal?(value) }
        @all = [keys, values]
      else
        keys.each_with_index { |key, index| store(key, values[index]) unless SAME.equal?(values[index]) }
      end
    end

    def write_all
      keys, values = @all
      return if keys.empty?

      # This raises while a program goes over the Hash.
      @hash[keys.first] = values.first
      Ikra.__put_all(@hash, keys, values)
    end

    # Yields whether values are subtracted.
    def sums(before)
      return unless SUMS.include?(@word) && Ikra.__own?(:+) && Ikra.__own?(:-)

      refuse("has -0.0, to which a block both adds and subtracts") if @word == "+-" && before.any? { |number| number.eql?(-0.0) }
      yield @word == "-"
    rescue IntegerOverflow
      overflow
    end

    # What the updates of a key make of what is there. nil: a total does not tell.
    def with_total(key, there, total)
      case there
      when Integer then known = INTEGERS.cover?(there)
      when Float then known = !there.nan? && !@word.match?(/\A[&|]\z/)
      when nil then known = @word.match?(/\A(nil|(v )?compact) /)
      end
      # The first value that is stored decides where a new key stands.
      known &&= there.nil? || !@word.start_with?("nil") || @hash.key?(key)
      step(there, total) if known
    end

    def overflow = raise(IntegerOverflow, "a value of `#{@name}` becomes an Integer beyond 64 bits")

    # What the updates of a key make of what is there.
    def folded(there, values, range, key)
      return values[range.last - 1] if @word == "="

      made = SAME
      range.each do |at|
        now = step(there, values[at])
        next if SAME.equal?(now)

        # The key is as new as its first value that is stored, which only the order of all updates tells.
        throw(self.class, nil) if SAME.equal?(made) && at > range.first && !@hash.key?(key)
        made = now
        there = or_seed(now)
      end
      made
    end

    def step(there, value)
      return value if @word == "="

      refuse("has #{there.class} and #{value.class}, and kernels both add and subtract Integers and Floats only") if @word == "+-"

      unless @word == "||="
        plain(there)
        plain(value)
      end
      made = STEPS.fetch(@word).call(there, value)
      overflow if made.is_a?(Integer) && !INTEGERS.cover?(made)
      made
    end

    # Checks that a value cannot be changed by others.
    def plain(value)
      case value
      when Integer, Float, Rational, Complex, Symbol, nil, true, false then nil
      else refuse("has a value of #{value.class}, which #{@word.split.grep_v(/\A(v|h|nil|or|compact)\z/).first} does not accumulate in kernels") unless value.instance_of?(String)
      end
    end

    def appended(keys, values, places)
      keys.each_with_index { |key, group| @appends << [list(key), values[places[group]...places[group + 1]]] }
      lists = @appends.map(&:first)
      # The order of updates tells what stands in an Array that several keys have.
      throw(self.class, nil) unless lists.size == self.class.distinct(lists).size
      done
    end

    # The Array to which values of a key are appended.
    def list(key)
      found = there(key)
      store(key, found = []) if @word != "<<" && !found
      case found
      when nil, true, false, Float, Symbol then found << nil
      end
      refuse("has Arrays, to which sections within Ikra.resident do not append") if @stays && @hash.key?(key)
      refuse("has a value of #{found.class}, and kernels append to Arrays") unless found.instance_of?(Array)
      refuse("has Arrays whose << is not Ruby's own") unless own?(Array, :<<) && own?(Array, :concat)
      raise FrozenError.new("can't modify frozen Array: #{found.inspect}", receiver: found) if found.frozen?

      found
    end

    # Notes what is to be written.
    def done
      unless @seen.equal?(@hash)
        @stores = @seen.reject { |key, value| @hash.key?(key) && value.equal?(@hash.fetch(key)) }.to_a
      end
      if @hash.frozen? && !(@stores.empty? && @all.nil?)
        raise FrozenError.new("can't modify frozen Hash: #{@hash.inspect}", receiver: @hash)
      end

      @touched = self.class.distinct([@hash, *@appends.map(&:first)])
      self
    end
  end

  class << self
    # @api private
    def __captured_hash = CapturedHash
  end
  private_constant :CapturedHash
end
