# frozen_string_literal: true

module Ikra
  # An account of the sections that {Ikra.explain} watched.
  class Explanation
    # @return [Object] what the block of {Ikra.explain} gave
    attr_reader :value

    # @return [Array<Section>] in the order in which they ran
    attr_reader :sections

    # @return [Array<Chain>] chains of +plazy+ whose values were asked for
    attr_reader :chains

    # @return [Array<Operation>] operations with more than their sections, or with none, in the order in which they
    #   ended
    attr_reader :operations

    # @return [Array<Group>] what each call of {Ikra.concurrently} had
    attr_reader :groups

    # @api private
    def initialize(value, sections, chains = [], operations = [], groups = [])
      @groups = groups
      @value = value
      @sections = sections
      @chains = chains
      @operations = operations
    end

    # @api private
    # A short description of the elements.
    def self.kind(elements)
      case elements
      when Integer, Range then "Integer"
      when Lazy::Bytes then "bytes"
      when MDArray then elements.dtype.to_s
      else
        known = Buffer.kind(elements)
        known ? KINDS.fetch(known) : elements.first(SAMPLE).map(&:class).uniq.first(4).join(" | ")
      end
    end

    KINDS = { i64: "Integer", f64: "Float", bool: "true and false" }.freeze
    # The most elements that are looked at where they are not all of one kind of number.
    SAMPLE = 1000
    private_constant :KINDS, :SAMPLE

    # All chains, sections and operations, as text. This generates no code.
    #
    # @return [String]
    def to_s
      return "no operation of Ikra's ran" if sections.empty? && chains.empty? && operations.empty?

      [*groups, *chains, *sections, *operations].join("\n\n")
    end

    # Each operation with its place, in one line.
    #
    # @return [String]
    def inspect
      "#<#{self.class} #{[*sections, *operations].map { |part| "#{part.operation} at #{part.path}:#{part.line}" }.uniq.join(", ")}>"
    end

    # The sections of one {Ikra.concurrently}, in the order of their calls. While they are explained they run in turn.
    #
    # [+calls+] an {Explanation::Call} for each.
    Group = Struct.new(:calls) do
      # @return [String]
      def to_s = ["#{calls.size == 1 ? "1 section" : "#{calls.size} sections"} of Ikra.concurrently", *calls].join("\n")
    end

    # One of these sections.
    #
    # [+number+] counts from 0.
    # [+operation+], [+path+], [+line+] the method, and where its block is.
    # [+after+] by number, the sections that it waits for, with what it reads of them.
    # [+measured+] how many seconds its kernels took, with copies. nil where it has none.
    # [+predicted+] what calls before let expect of that. nil where nothing is known.
    # [+size+] its {Explanation::Size} under +policy: :paper+. nil otherwise.
    Call = Struct.new(:number, :operation, :path, :line, :after, :measured, :predicted, :size) do
      # @return [String]
      def to_s
        waits = after.map { |number, reason| "#{number} (#{reason})" }
        "  #{number}: #{operation}#{" at #{path}:#{line}" if path}, #{waits.empty? ? "waits for none" : "after #{waits.join(", ")}"}#{"; #{size}; #{times}" if size}"
      end

      private

      def times
        shown = [measured, predicted].map { |seconds| seconds ? format("%.3f ms", seconds * 1e3) : "an unknown time" }
        "took #{shown.first}, expected #{shown.last}"
      end
    end

    # What a plan gives a kernel.
    #
    # [+batch+] counts from 0. A batch begins when the one before has ended.
    # [+blocks+], [+warps+] how many blocks of how many warps it has on each multiprocessor, or on each pair of these.
    #   nil where it does not fit: then it runs alone, as always.
    # [+unit+] 2 for pairs, else 1.
    Size = Struct.new(:batch, :blocks, :warps, :unit) do
      # @return [String]
      def to_s
        return "batch #{batch}, alone" unless blocks

        "batch #{batch}, #{blocks} #{blocks == 1 ? "block" : "blocks"} of #{warps} #{warps == 1 ? "warp" : "warps"} on each #{unit == 1 ? "multiprocessor" : "pair of multiprocessors"}"
      end
    end

    # @api private
    # By number, the {Size} of calls that a plan has. Calls that wait for others are planned after these.
    def self.planned(watches)
      sizes = {}
      batches = 0
      watches.each_index.slice_when { |_, number| watches[number].after.any? }.each do |numbers|
        numbers = numbers.select { |number| watches[number].planned? }
        plan = Ikra.__plan(numbers.map { |number| watches[number].wanted })
        numbers.zip(plan) { |number, (batch, *size)| sizes[number] = Size.new(batches + batch, *size) }
        batches += plan.map { |batch,| batch + 1 }.max || 0
      end
      sizes
    end

    # Work on all elements at once, without a block: a sum of numbers, a sort by keys that a section has computed, a
    # list made from an MDArray.
    #
    # [+what+] +"sum"+, +"sort"+, +"grouping"+.
    # [+elements+], [+kind+] how many, and what they are.
    # [+backend+], [+why+] where it ran, and why there.
    # [+seconds+] how long it took.
    Step = Struct.new(:what, :elements, :kind, :backend, :why, :seconds) do
      # @return [String] one line, with milliseconds
      def to_s = "#{what} over #{Explanation.count(elements)} of #{kind}, on #{backend} (#{why}): #{format("%.3f ms", seconds * 1e3)}"
    end

    # One call of a method of Ikra's that consists of more than its sections.
    #
    # [+operation+] +:psort_by+.
    # [+path+], [+line+] where its block is, or where it was called.
    # [+elements+], [+kind+] how many elements it has, and what they are; nil where its steps say that.
    # [+backend+] what it ran on; +:ruby+ where it is a method of Ruby's own.
    # [+why+] why it is one.
    # [+seconds+] how long it took.
    # [+phases+] seconds by phase, as those of {Profile}.
    # [+runs+] how many sections it ran.
    # [+steps+] what else it did.
    Operation = Struct.new(:operation, :path, :line, :elements, :backend, :kind, :why, :seconds, :phases, :runs, :steps) do
      def initialize(*told, steps)
        super(*told, steps.map { |step| Step.new(*step) })
      end

      # @return [String] lines for its sections, steps and phases, with milliseconds
      def to_s
        of = kind || steps.first&.kind
        sections = "Sections: #{runs}, as told above" if runs.positive?
        ran = steps.empty? ? ["Backend: #{backend}#{" (#{why})" if why}"] : steps.map { |step| "Step: #{step}" }
        ["#{operation} at #{path}:#{line}, over #{Explanation.count(elements)}#{" of #{of}" if of}", *sections, *ran, "Took: #{times}"].join("\n")
      end

      private

      def times
        shown = phases.map { |phase, time| format("%s %.3f ms", phase, time * 1e3) }.join(", ")
        format("%.3f ms", seconds * 1e3) + (shown.empty? ? "" : " (#{shown})")
      end
    end

    # @api private
    def self.count(elements) = "#{elements} #{elements == 1 ? "element" : "elements"}"

    # One chain of +plazy+, cut into kernels.
    #
    # [+stages+] +["map", "take(3)"]+.
    # [+kernels+] in their order; each is a section, or more where the chain may end early.
    Chain = Struct.new(:stages, :kernels) do
      # @return [String] the chain, and a line for each kernel and for why it ends there
      def to_s
        lines = kernels.each_with_index.flat_map do |kernel, index|
          ["  kernel #{index + 1}: #{kernel.stages.join(", ")}", *[*kernel.notes, ("then #{kernel.ending}" if kernel.ending), kernel.why].compact.map { |line| "    #{line}" }]
        end
        [["plazy", *stages].join("."), *lines, "  # kernels: #{kernels.size}"].join("\n")
      end

      # Notes that the reduction is no part of the last kernel.
      # @api private
      def apart(why, alone: false, ending: nil)
        name = kernels.last.stages.pop
        kernels.last.ending = ending
        kernels.last.why = "#{name} is not in it: #{why}"
        kernels << Chain::Kernel.new([name], nil, ["by itself"], nil, self) if alone
      end
    end

    class Chain
      # One kernel of a chain.
      #
      # [+stages+] the stages that are fused into it.
      # [+ending+] what the host does with its values; nil: nothing.
      # [+notes+] for each stencil that looks at other stages: how it gets their values, and what each way costs.
      # [+why+] why the next stage is not in it.
      Kernel = Struct.new(:stages, :ending, :notes, :why) do
        def initialize(stages, ending, notes, why, chain)
          super(stages, ending, notes, why)
          @chain = chain
        end

        # Notes that it became two kernels, of which this one is the second.
        # @api private
        def cut(first, rest)
          count = first.stages.size
          first.explained = self.class.new(stages.take(count), first.made, first.told, first.why, @chain)
          rest.explained = self
          self.ending &&= rest.made
          self.stages = stages.drop(count)
          self.notes = rest.told
          add(first.explained)
        end

        # Notes that another kernel has found where +take_while+ ends it.
        # @api private
        def after(finding)
          stages.delete(:take_while)
          add(self.class.new(finding, nil, [], "finds where take_while ends", @chain))
        end

        private

        def add(before) = @chain.kernels.insert(@chain.kernels.index { |kernel| kernel.equal?(self) }, before)
      end
    end

    # A column: one field of objects, the elements of arrays, results and the like.
    #
    # [+name+] +"Car@speed"+.
    # [+storage+] +"f64"+, +"i64"+, +"u32"+ (a reference to an object) or +"u8"+ (true and false, or the tag of a
    #   union).
    # [+rows+] what its rows belong to: +"Car, Bus"+, +"each element"+, +"the elements of Array of Integer"+.
    # [+layout+] where the rows lie.
    # [+read+], [+written+] whether the program does so, after it was optimized.
    Column = Struct.new(:name, :storage, :rows, :layout, :read, :written, keyword_init: true) do
      # @return [String] one line
      def to_s
        use = [("read" if read), ("written" if written)].compact
        format("%-28s %-4s %s; %s; %s", name, storage, rows, layout, use.empty? ? "not used" : use.join(" and "))
      end
    end

    # A test that the program makes, or that was removed from it.
    #
    # [+kind+] +:exception+ (what Ruby raises), +:overflow+ (an Integer beyond 64 bits), +:speculation+ (an assumption
    #   that may turn out to be wrong), +:room+ (for new objects and arrays).
    # [+what+] +"ZeroDivisionError"+, +"Integer + beyond 64 bits"+.
    # [+path+], [+line+] where in the Ruby program.
    # [+lowered+] how often it was in the program at first.
    # [+left+] how often it is there after all tests were removed that cannot fail; inlining makes copies.
    Check = Struct.new(:kind, :what, :path, :line, :lowered, :left, keyword_init: true) do
      # @return [Boolean] whether the kernel makes it
      def left? = left.positive?

      # @return [String] one line, with the number of copies that are left
      def to_s = "line #{line}: #{what}#{", #{left} times" if left > 1}"
    end

    # A write to a slot that two elements of one tick may write. Which of them comes last is not known.
    #
    # [+what+] +"@state of Person"+, +"the elements of Array of Integer"+.
    # [+path+], [+line+] where in the Ruby program.
    # [+apart+] a change with which each element writes its own slot.
    Write = Struct.new(:what, :path, :line, :apart, keyword_init: true) do
      # @return [String] one line, with the change
      def to_s = "line #{line}: #{what}; to prove them apart, #{apart}"
    end

    # A block or a method, compiled for some types.
    #
    # [+name+] +"block"+, +"Car#move"+.
    # [+path+], [+line+] where it begins; for a method of Ruby's own, where Ikra has its Ruby code.
    # [+receiver+] type of +self+; nil for the block.
    # [+arguments+] Hash of names to types.
    # [+result+] type of what it returns.
    # [+inlined+] whether it is part of its caller.
    # [+library+] whether it is a method of Ruby's own.
    # [+types+] Hash of lines to Hashes of names to types: what a variable or instance variable holds after that line.
    Body = Struct.new(:name, :path, :line, :receiver, :arguments, :result, :inlined, :library, :types, keyword_init: true) do
      # @return [String] name and types in one line: +"block(x: Integer) → Float"+
      def to_s
        taken = arguments.map { |name, type| "#{name}: #{type}" }.join(", ")
        "#{name}(#{taken}) → #{result}#{" on #{receiver}" if receiver}#{", inlined" if inlined}"
      end
    end

    # One call of a parallel method, compiled for the objects of that call.
    class Section
      # @return [Symbol] the parallel method, +:pmap+
      attr_reader :operation
      # @return [String] file of the block
      attr_reader :path
      # @return [Integer] line where the block begins
      attr_reader :line
      # @return [String] text of the block
      attr_reader :source
      # @return [Integer] how many elements it ran over
      attr_reader :elements
      # @return [Integer] how many ticks each ran
      attr_reader :ticks
      # @return [Array<Body>] methods that were compiled, each with its types. This includes Ruby's own methods, where
      #   Ikra has Ruby code for them.
      attr_reader :specialisations
      # @return [Array<Column>]
      attr_reader :columns
      # @return [Array<Check>] in order of place, removed ones included
      attr_reader :checks
      # @return [String] how jobs map to elements
      attr_reader :jobs
      # @return [Symbol] +:cpu+, +:cuda+, …
      attr_reader :backend
      # @return [String] why this backend
      attr_reader :why
      # @return [Hash{Symbol => Float}] seconds of each stage of compiling. The stages are +:source+ (finding the
      #   block's text), +:syntax+, +:world+ (questions about live objects, classes and methods), +:infer+, +:lower+,
      #   +:passes+, +:layout+ and +:prepare+ (in the backend).
      attr_reader :stages
      # @return [Symbol, nil] the reduction of results that are not stored: +:sum+, +:min+, +:max+, +:count+
      attr_reader :reduction
      # @return [Integer] 2 where results are a column before they are reduced. Else 1, or 1 for each tick.
      attr_reader :kernels
      # @return [Array<String>] fields because of which ticks cannot be fused: others may read them while they are
      #   written
      attr_reader :apart

      # @return [Array<Write>] writes of slots that elements may share, in order of place. +check: :races+ says whether
      #   two elements of one tick wrote the same slot.
      attr_reader :shared

      # @api private
      def initialize(told)
        %i[operation path line source elements ticks jobs backend why stages apart fused reduction kernels code].each do |name|
          instance_variable_set(:"@#{name}", told.fetch(name))
        end
        @columns = told.fetch(:columns).map { |column| Column.new(**column) }
        @checks = told.fetch(:checks).map { |check| Check.new(**check) }
        @shared = told.fetch(:shared).map { |write| Write.new(**write) }
        bodies = told.fetch(:bodies).map { |body| body(body) }
        @block = bodies.find { |body| body.receiver.nil? }
        @specialisations = bodies - [@block]
      end

      # The type of each variable of the block, after each line that mentions it.
      #
      # @example
      #   section.types[3] # => { "speed" => "Float | nil", "car" => "Car (owned)" }
      # @return [Hash{Integer => Hash{String => String}}] by line
      def types = @block.types

      # @return [String] type of the block's value
      def result = @block.result

      # @return [Boolean] whether all ticks run in one launch
      def fused? = @fused

      # Generated code.
      #
      # @param form [Symbol] +:ir+ (the program for backends), +:lowered+ (before it was optimized), +:cpu+ (Cranelift's
      #   text), +:cuda+ (CUDA C++, with registers and occupancy where the section ran there)
      # @return [String]
      # @raise [ArgumentError] for another form
      def code(form = :ir) = @code.text(form)

      # @return [String] operation and place
      def inspect = "#<#{self.class} #{operation} at #{path}:#{line}>"

      # The block with the types of its lines, methods, columns, checks that are left, jobs, the backend and why it was
      # chosen, and how long compiling took in milliseconds.
      #
      # @return [String]
      def to_s
        parts = [heading, listing, *methods_part, *columns_part, *checks_part, *shared_part, *launch_part]
        parts.join("\n")
      end

      private

      def body(told)
        types = told.fetch(:variables).group_by(&:first).transform_values { |rows| rows.to_h { |_, name, type| [name, type] } }
        Body.new(**told.except(:variables), types: types)
      end

      def heading
        over = Explanation.count(elements)
        over += ", #{ticks} ticks" if operation == :peach && ticks != 1
        "#{operation} at #{path}:#{line}, over #{over}"
      end

      # The block's lines, each with the types of its variables.
      def listing
        lines = source.lines.map(&:chomp)
        margin = lines.drop(1).reject { |text| text.strip.empty? }.map { |text| text[/\A\s*/].size }.min || 0
        margin = [margin - 2, 0].max unless lines.last.match?(/\A\s*(end|\})/)
        lines = [lines.first, *lines.drop(1).map { |text| text.sub(/\A\s{0,#{margin}}/, "") }]
        wide = [lines.map(&:size).max, 60].min
        lines.each_with_index.map do |text, index|
          known = types.fetch(line + index, {}).map { |name, type| "#{name}: #{type}" }.join(", ")
          format("%6d  %-#{wide}s  %s", line + index, text, ("# #{known}" unless known.empty?)).rstrip
        end.join("\n")
      end

      def methods_part
        own = specialisations.reject(&:library)
        library = specialisations.select(&:library).map(&:name).grep_v(/#__/).tally.map { |name, count| count > 1 ? "#{name} (#{count} times)" : name }
        return ["Result: #{result}"] if own.empty? && library.empty?

        ["Result: #{result}", "Methods", *own.map { |body| "  #{body}" }, *("  of Ruby's own: #{library.join(", ")}" unless library.empty?)]
      end

      # Elements after a splat in an Array literal are in a list of their own. Ruby 3.1 may free that list while it
      # compiles (spec/integration/garbage_collection_spec.rb).
      def columns_part = ["Columns", *columns.map { |column| "  #{column}" }]

      def checks_part
        return ["Checks: none"] if checks.empty?

        left = checks.select(&:left?)
        ["Checks: #{checks.count { |check| check.lowered.positive? }}, of which #{checks.count { |check| !check.left? }} were removed", *left.map { |check| "  #{check}" }]
      end

      def shared_part
        return [] if shared.empty?

        ["Writes that elements may share (run it with check: :races to see whether they do)", *shared.map { |write| "  #{write}" }]
      end

      def reduction_part
        return [] unless reduction

        ["Reduction: #{reduction}, #{kernels == 1 ? "by the kernel that computes the elements" : "of a column that a kernel fills before"}", "# kernels: #{kernels}"]
      end

      def launch_part
        ticks = fused? ? "all ticks in one launch" : "a launch for each tick#{": elements may share #{apart.join(", ")}" unless apart.empty?}"
        time = stages.map { |stage, seconds| format("%s %.2f ms", stage, seconds * 1e3) }.join(", ")
        ["Jobs: #{jobs}", *("Ticks: #{ticks}" if operation == :peach), *reduction_part, "Backend: #{backend} (#{why})", "Compiled in: #{time}"]
      end
    end
  end

  class << self
    # Runs a block, and explains the calls of parallel methods in it. An explanation has:
    #
    # * the type of each variable at its line,
    # * columns and their layout,
    # * methods and the types they were compiled for,
    # * checks, both removed and remaining,
    # * the order of jobs,
    # * the backend, and why it was chosen,
    # * how long each stage of compiling took,
    # * which section of {concurrently} waits for which, and why,
    # * and generated code.
    #
    # Sections of this Fiber are compiled anew for it, and run as always. Operations without a block (sums of MDArrays,
    # sorting, Ruby's own methods) are listed with the number and kind of their elements, where they ran, and how long
    # they took.
    #
    # @example
    #   explanation = Ikra.explain { cars.pmap { |car| car.speed * 3.6 } }
    #   puts explanation                               # all of it
    #   explanation.sections.first.types               # => { 1 => { "car" => "Car (owned)" } }
    #   puts explanation.sections.first.code(:cuda)
    # @return [Explanation]
    # @raise [ArgumentError] without a block
    def explain
      raise ArgumentError, "Ikra.explain needs a block" unless block_given?

      outer = Thread.current[:__ikra_chains]
      chains = Thread.current[:__ikra_chains] = []
      around, together = Thread.current[:__ikra_together], Thread.current[:__ikra_together] = []
      __explain_start
      begin
        value = yield
      ensure
        sections, operations = __explain_stop
        Thread.current[:__ikra_chains] = outer
        Thread.current[:__ikra_together] = around
      end
      operations = operations.map { |told| Explanation::Operation.new(*told) }
      # A chain without kernels is listed as a chain.
      operations.reject! { |operation| operation.operation == :plazy && operation.steps.empty? }
      Explanation.new(value, sections.map { |told| Explanation::Section.new(told) }, chains, operations, __groups(together))
    end

    # @api private
    # What the sections of each Ikra.concurrently waited for, and their plan.
    def __groups(together)
      together.map do |calls|
        sizes = Explanation.planned(calls.map(&:last))
        Explanation::Group.new(calls.each_with_index.map do |(operation, place, watch), number|
          Explanation::Call.new(number, operation, *(place || [nil, nil]), watch.after, watch.seconds, watch.predicted, sizes[number])
        end)
      end
    end

    # @api private
    # Adds the sections of an Ikra.concurrently to the explanation, if one is being collected.
    def __together(calls) = Thread.current[:__ikra_together]&.push(calls)

    # @api private
    # Adds a chain to the explanation, if one is being collected.
    def __chain(plan, reduced)
      Thread.current[:__ikra_chains]&.push(told = plan.explanation(reduced))
      told
    end
  end
end
