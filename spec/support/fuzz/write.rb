# frozen_string_literal: true

# Writes generated programs as cases: ruby --disable=gems write.rb FOLDER SEED FIRST LAST
require_relative "program"

folder, *numbers = ARGV
seed, first, last = numbers.map { |text| Integer(text) }
(first..last).each do |number|
  Fuzz::Program.generate(seed, number).write(File.join(folder, format("program_%d_%06d.rb", seed, number)), "Seed #{seed}, program #{number}.")
end
