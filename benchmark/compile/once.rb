# frozen_string_literal: true

# One process of benchmark/compile.rb: runs a program, and prints the stages of every section's compilation as JSON.
#
#   ruby -Ilib benchmark/compile/once.rb example examples/traffic.rb --actors 100 …
#   ruby -Ilib benchmark/compile/once.rb generated FILE

require "json"
require "stringio"
require "ikra"

Ikra.configure { |c| c.backend = :cpu }
# Work that a process does once, for whatever section comes first: it opens the backend, and reads Ikra's Ruby code for
# Ruby's own methods.
once = Ikra.explain { [[1]].pmap { |list| list.sum { |x| x } } }
root = Dir.pwd
kind, file, *arguments = ARGV
ARGV.replace(arguments)

explanation =
  if kind == "generated"
    load file
    Ikra.explain do
      got = [3, 5].pmap(&BLOCK)
      expected = [3, 5].map(&BLOCK)
      abort "#{file}: pmap gives #{got}, map #{expected}" unless got == expected
    end
  else
    shown = $stdout
    $stdout = StringIO.new
    begin
      $PROGRAM_NAME = File.expand_path(file)
      Dir.chdir(ENV.fetch("IKRA_BENCH_PLACE", "."))
      Ikra.explain { load $PROGRAM_NAME }
    ensure
      $stdout = shown
    end
  end

sections = explanation.sections.map do |section|
  { place: "#{section.path.delete_prefix("#{root}/")}:#{section.line}", lines: section.source.lines.size, methods: section.specialisations.size, stages: section.stages }
end
sections.unshift({ place: "first section of a process", stages: once.sections.first.stages })
puts JSON.generate(sections: sections)
