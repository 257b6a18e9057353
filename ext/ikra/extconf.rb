# frozen_string_literal: true

# Writes a Makefile that has cargo build the extension and then removes cargo's target directory, so that plain
# RubyGems can install the gem. In a checkout use `rake compile` instead: it keeps cargo's intermediate files.

require "rbconfig"
require "shellwords"

def executable?(command)
  ENV.fetch("PATH", "").split(File::PATH_SEPARATOR).any? { |folder| File.executable?(File.join(folder, command)) }
end

cargo = ENV.fetch("CARGO", "cargo")
unless executable?(cargo) || File.executable?(cargo)
  abort "Ikra is built with Rust, and there is no `cargo` on the PATH. Install Rust from https://rustup.rs, then install Ikra again."
end

hint = "Ikra could not be built. It needs Rust 1.95 or newer (rustup update), Ruby's headers and libclang " \
       "(on Debian and Ubuntu: apt install ruby-dev libclang-dev)."

# Shell words for a recipe: `$` is make's own.
def word(text) = Shellwords.escape(text).gsub("$", "$$")

File.write("Makefile", <<~MAKEFILE)
  SHELL = /bin/sh
  DESTDIR =
  sitearchdir = #{RbConfig::CONFIG.fetch("sitearchdir")}
  target = #{word(File.join(Dir.pwd, "cargo-target"))}

  export RUBY = #{RbConfig.ruby.gsub("$", "$$")}
  unexport CARGO_BUILD_TARGET

  all: ikra.so

  ikra.so:
  \t#{word(cargo)} build --release --locked --package ikra --manifest-path #{word(File.expand_path("../../Cargo.toml", __dir__))} --target-dir $(target) \\
  \t  && cp $(target)/release/libikra.so ikra.so; status=$$?; rm -rf $(target); \\
  \t  if [ $$status -ne 0 ]; then echo #{word(hint)} >&2; fi; exit $$status

  install: ikra.so
  \tmkdir -p "$(DESTDIR)$(sitearchdir)/ikra"
  \tcp ikra.so "$(DESTDIR)$(sitearchdir)/ikra/ikra.so.new"
  \tmv "$(DESTDIR)$(sitearchdir)/ikra/ikra.so.new" "$(DESTDIR)$(sitearchdir)/ikra/ikra.so"
  \trm -f ikra.so

  clean:
  \trm -rf $(target) ikra.so

  .PHONY: all install clean
MAKEFILE
