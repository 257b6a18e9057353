# frozen_string_literal: true

require "open3"
require "rbconfig"
require "shellwords"
require "tmpdir"

# The built gem in an empty GEM_HOME, with plain RubyGems and without access to this checkout.
RSpec.describe "The gem", :slow do
  project = File.expand_path("../..", __dir__)
  gem_command = [RbConfig.ruby, "-S", "gem"]

  # Runs a command in an environment without this checkout, Bundler, or any way to the rb_sys gem.
  def run!(environment, *command, chdir:)
    clean = { "RUBYLIB" => nil, "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil, "CARGO_TARGET_DIR" => nil }
    output, status = Open3.capture2e(clean.merge(environment), *command, chdir:)
    expect(status).to be_success, "#{command.join(" ")} failed:\n#{output}"
    output
  end

  # A cargo that leaves out what takes most of the time, as it only matters whether the gem builds. It does not optimise
  # Ikra's crates, and it finds those of others built if `rake compile` has built them here.
  def cargo(folder, project)
    known = File.join(ENV.fetch("CARGO_TARGET_DIR", File.join(project, "target")), "release")
    options = %w[ikra ikra-core].map { |crate| "--config profile.release.package.#{crate}.opt-level=0" }.join(" ")
    path = File.join(folder, "cargo")
    File.write(path, <<~SHELL, perm: 0o755)
      #!/bin/sh
      for word; do
        [ "$before" = --target-dir ] && target=$word/release
        before=$word
      done
      if [ -d #{known.shellescape}/.fingerprint ]; then
        mkdir -p "$target"
        (cd #{known.shellescape} && cp -a deps build .fingerprint "$target/") || exit 1
        rm -rf "$target"/*/*ikra* "$target"/.fingerprint/*ikra*
      else
        export CARGO_PROFILE_RELEASE_OPT_LEVEL=0
      fi
      exec cargo "$@" #{options}
    SHELL
    path
  end

  it "builds, installs without the rb_sys gem, is required, and leaves no cargo target directory behind" do
    Dir.mktmpdir("ikra-gem") do |folder|
      home = File.join(folder, "home")
      gem_file = File.join(folder, "ikra.gem")
      run!({}, *gem_command, "build", "ikra.gemspec", "--output", gem_file, chdir: project)
      environment = { "GEM_HOME" => home, "GEM_PATH" => home, "CARGO" => cargo(folder, project) }
      run!(environment, *gem_command, "install", "--local", "--no-document", gem_file, chdir: folder)

      where = run!(environment, RbConfig.ruby, "-w", "-e", <<~RUBY, chdir: folder)
        require "ikra"
        raise "versions differ" unless Ikra::VERSION == Ikra.__native_version
        puts $LOADED_FEATURES.grep(/ikra/)
      RUBY
      expect(where.lines.map(&:chomp)).to all(start_with(home)).and include(end_with("ikra/ikra.so"))

      left = Dir[File.join(home, "**/{target/release,cargo-target,*.rlib,*.rmeta,*.d,ext/**/*.so}")]
      expect(left).to be_empty
    end
  end
end
