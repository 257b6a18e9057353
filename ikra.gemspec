# frozen_string_literal: true

require_relative "lib/ikra/version"

Gem::Specification.new do |spec|
  spec.name = "ikra"
  spec.version = Ikra::VERSION
  spec.authors = ["The Ikra authors"]
  spec.summary = "Runs plain Ruby blocks over arrays on a GPU, or on all CPU cores."
  spec.description = <<~TEXT
    Ikra reads the source of an ordinary Ruby block at the call, infers every type from the values that are there,
    compiles one kernel for an NVIDIA GPU or for all CPU cores, runs it over the reachable objects, and writes what
    changed back into them. The answer is the one that plain Ruby gives.
  TEXT
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"
  spec.metadata = { "rubygems_mfa_required" => "true" }

  spec.extensions = ["ext/ikra/extconf.rb"]
  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "sig/**/*.rbs", "docs/**/*.md", "ext/*/Cargo.toml", "ext/*/src/**/*", "ext/ikra/extconf.rb",
        "ext/ikra-core/tests/cuda_driver.rs", # cargo reads no manifest that names a missing file
        "Cargo.toml", "Cargo.lock", "README.md", "CHANGELOG.md", "LICENSE"].select { |path| File.file?(path) }
  end
end
