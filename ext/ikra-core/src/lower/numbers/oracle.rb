# frozen_string_literal: true

# Answers questions about numeric methods, one per line on standard input: a receiver, a method, arguments. Prints what
# Ruby answers, one line each, in the form that tests.rs reads. `Math.sqrt` and the like are receivers and methods too.

def value(word)
  case word
  when "nil" then nil
  when "true" then true
  when "false" then false
  when "sym" then :a
  when "module" then Comparable
  when "Math" then Math
  when "Integer" then Integer
  when "Kernel" then Kernel
  when "Random" then Random
  when /\Ai/ then Integer($')
  when /\Af/ then [Integer($', 16)].pack("Q").unpack1("D")
  when /\Ar(.*?)(\.\.\.?)(.*)\z/ then Range.new(value($1), value($3), $2 == "...")
  else raise "what is #{word}?"
  end
end

# The low 64 bits, signed.
def wrap(integer)
  ((integer + 2**63) & (2**64 - 1)) - 2**63
end

def show(answer)
  case answer
  when Integer then (wrap(answer) == answer ? "i#{answer}" : "big #{wrap(answer)}")
  when Float then answer.nan? ? "fnan" : format("f%x", [answer].pack("D").unpack1("Q"))
  when nil, true, false then answer.inspect
  when Array then answer.map { |one| show(one) }.join(" ")
  else answer.class.name
  end
end

# Whether Ruby would need too much memory on the way.
def huge?(receiver, method, args)
  numbers = args.flat_map { |arg| arg.is_a?(Range) ? [arg.begin, arg.end] : arg }.grep(Numeric)
  first = numbers.first
  case method
  when "<<" then first && first > 1000 && receiver != 0
  when ">>" then first && first < -1000 && receiver != 0
  when "[]" then numbers.size == 2 && numbers.any? { |number| number.abs > 1000 }
  when "floor", "ceil" then first && first < -1000 && first > -2**31
  end
end

$stdin.each_line(chomp: true) do |line|
  receiver, method, *args = line.split
  receiver = value(receiver)
  args = args.map { |arg| value(arg) }
  answer =
    begin
      huge?(receiver, method, args) ? "huge" : show(receiver.public_send(method, *args))
    rescue NoMemoryError
      warn line
      "huge"
    rescue StandardError => e
      "#{e.class}: #{e.message}"
    end
  puts answer
end
