# frozen_string_literal: true

require_relative "generator"
require_relative "oracle"

module Fuzz
  # A generated program: definitions, lines of set-up, one section, and expressions to look at afterwards.
  class Program
    # The same seed and number give the same program.
    def self.generate(seed, number)
      Generator.new((seed * 1_000_000) + number).program
    end

    # `code` is a body of the definitions and, last, the section.
    def initialize(code, setup, watched)
      @code = code
      @setup = setup
      @watched = watched
    end

    # Writes it as a case, with the answer of plain Ruby. False where it cannot be set up.
    def write(path, title)
      File.write(path, text(title, []))
      expectations, beyond = Oracle.new(path).answer(@setup, @watched)
      places = beyond.map { |tick, index| "#{tick}/#{index}" }.join(" ")
      # With the same number of lines, so that lines of exceptions stay the same.
      File.write(path, text(places.empty? ? title : "#{title} beyond: #{places}", expectations))
      true
    rescue Oracle::NoAnswer
      File.delete(path)
      false
    end

    # Smaller programs, the smallest first.
    def reductions
      (smaller_code + smaller_setup).select { |program| program.size < size }.sort_by(&:size)
    end

    def size
      @size ||= @code.to_s.size + @setup.sum(&:size)
    end

    private

    # The text of a case file. Expectations that are not known yet take a line, too.
    def text(title, expectations)
      space = [@watched.size + 1 - expectations.size, 0].max
      head = [title, "", *@setup, *expectations, *[""] * space].map { |line| "# #{line}".rstrip }
      *definitions, section = @code.parts.map(&:to_s).reject(&:empty?)
      "#{[head.join("\n"), *definitions, section.to_s.gsub(/\n\n+/, "\n")].join("\n\n")}\n"
    end

    def smaller_code
      count = 0
      @code.each_node { count += 1 }
      (0...count).flat_map do |at|
        nth(@code, at).reductions.filter_map do |parts|
          next if parts.empty? && at.zero?

          copy = @code.copy
          nth(copy, at).parts = parts.map { |part| part.is_a?(Node) ? part.copy : part }
          Program.new(copy, @setup, @watched)
        end
      end
    end

    def nth(root, at)
      found = nil
      root.each_node do |node|
        found ||= node if at.zero?
        at -= 1
      end
      found
    end

    def smaller_setup
      @setup.each_index.flat_map do |at|
        shorter = items_removed(@setup[at]).map { |line| with_setup([*@setup[0...at], line, *@setup[(at + 1)..]]) }
        shorter << with_setup(@setup[0...at] + @setup[(at + 1)..]) unless @setup[at].start_with?("elements")
        shorter
      end
    end

    def with_setup(lines)
      names = lines.map { |line| line[/\A\w+/] }
      Program.new(@code, lines, @watched.select { |expression| names.include?(expression[/\A\w+/]) })
    end

    # `a = Car(x: 1, y: [2])` without an ivar, `list = [1, 2]` without an item.
    def items_removed(line)
      head, list, tail = line.match(/\A(\w+ = \w*[(\[])(.+)([)\]].*)\z/)&.captures
      return [] unless list

      items = list.scan(/(?:[^,\[\]()]|\[[^\]]*\]|\([^)]*\))+/).map(&:strip)
      items.each_index.map { |i| "#{head}#{(items[0...i] + items[(i + 1)..]).join(", ")}#{tail}" }
    end
  end
end
