# frozen_string_literal: true

require "open3"
require "set"
require "tmpdir"

# sig/ikra.rbs as RBS reads it, beside the modules that it describes.
module Signatures
  ROOT = File.expand_path("../../..", __dir__)
  FILE = File.join(ROOT, "sig/ikra.rbs")
  LIBRARIES = %w[pathname set].freeze

  # A module of Ikra's, or a singleton class, with what the signatures say of it.
  Described = Struct.new(:type, :module, :definition) do
    # The names of methods that the signatures have for this very module.
    def names = definition.methods.select { |_, method| method.defs.any? { |one| one.implemented_in == type } }.keys

    def to_s = type.to_s.delete_prefix("::")
    def separator = self.module.singleton_class? ? "." : "#"
  end

  class << self
    # Ruby comes with RBS, but a distribution may leave it out.
    def rbs?
      require "rbs"
      require "rbs/test"
      true
    rescue LoadError
      false
    end

    # A folder with the signatures. RBS demands that all declarations of a class have the same parameters, and its own
    # of Set has others from version to version.
    def folder
      @folder ||= Dir.mktmpdir("ikra-sig").tap do |folder|
        owner = Process.pid
        at_exit { FileUtils.rm_rf(folder) if Process.pid == owner }
        files = Dir[File.join(Gem.loaded_specs.fetch("rbs").full_gem_path, "{core,stdlib/set/0}/set.rbs")]
        set = files.filter_map { |file| File.read(file)[/^class Set\[.*?\]/] }.first
        File.write(File.join(folder, "ikra.rbs"), File.read(FILE).sub(/^class Set\[.*?\]/, set))
      end
    end

    # What `rbs validate` says, and whether it succeeds.
    def validate
      libraries = LIBRARIES.flat_map { |name| ["-r", name] }
      Open3.capture2e(RbConfig.ruby, Gem.bin_path("rbs", "rbs"), *libraries, "-I", folder, "validate", "--silent")
    end

    def builder
      @builder ||= begin
        loader = RBS::EnvironmentLoader.new
        LIBRARIES.each { |name| loader.add(library: name, version: nil) }
        loader.add(path: Pathname(folder))
        RBS::DefinitionBuilder.new(env: RBS::Environment.from_loader(loader).resolve_type_names)
      end
    end

    def described
      # Defines Ikra::Refinements. The methods are there already.
      require "ikra/refinements"
      @described ||= builder.env.class_decls.keys.select { |type| type.to_s.match?(/\A::Ikra(::|\z)/) }.flat_map do |type|
        mod = Object.const_get(type.to_s)
        [Described.new(type, mod, builder.build_instance(type)), Described.new(type, mod.singleton_class, builder.build_singleton(type))]
      end
    end

    # Public methods without a signature, and signatures without a method.
    def differences
      described.flat_map do |one|
        written = one.module.public_instance_methods(false).reject { |name| internal?(one, name) }
        missing = written.reject { |name| one.definition.methods.key?(name) }
        extra = one.names.reject { |name| one.module.method_defined?(name) || one.module.private_method_defined?(name) }
        missing.map { |name| "no signature: #{one}#{one.separator}#{name}" } + extra.map { |name| "no method: #{one}#{one.separator}#{name}" }
      end
    end

    # Public modules without a signature.
    def unknown
      known = described.map(&:module)
      modules_in(Ikra).reject { |mod| known.include?(mod) || private_paths.include?(mod.name) }.map(&:name)
    end

    private

    def modules_in(mod)
      inner = mod.constants(false).map { |name| mod.const_get(name) }.grep(Module).select { |one| one.name.start_with?("#{mod.name}::") }
      inner + inner.flat_map { |one| modules_in(one) }
    end

    def internal?(one, name)
      return true if name.start_with?("__") || private_paths.include?("#{one}#{one.separator}#{name}")

      # Struct defines these for each of its classes.
      one.module.singleton_class? && %i[new [] members keyword_init?].include?(name)
    end

    # What YARD knows to be @api private, with all that is within it.
    def private_paths
      @private_paths ||= begin
        require "yard"
        YARD::Registry.clear
        YARD.parse(File.join(ROOT, "lib/ikra/**/*.rb"), [], YARD::Logger::ERROR)
        hidden = ->(object) { object.is_a?(YARD::CodeObjects::Base) && !object.root? && (object.tag(:api)&.text == "private" || object.has_tag?(:private) || hidden[object.parent]) }
        YARD::Registry.all.select(&hidden).to_set(&:path)
      end
    end
  end
end
