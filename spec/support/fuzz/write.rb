# frozen_string_literal: true

# Writes generated programs as cases: ruby --disable=gems write.rb FOLDER COUNT SEED
require_relative "program"

folder, count, seed = ARGV
Integer(count).times do |i|
  Fuzz::Program.generate((Integer(seed) * 1_000_000) + i).write(File.join(folder, format("program_%06d.rb", i)), "Seed #{seed}, program #{i}.")
end
