//! The Ruby extension: what Ruby can see of Ikra.

use magnus::{Error, Object, Ruby, function};

#[magnus::init]
fn init(ruby: &Ruby) -> Result<(), Error> {
    let ikra = ruby.define_module("Ikra")?;
    ikra.define_singleton_method("__native_version", function!(native_version, 0))?;
    Ok(())
}

fn native_version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
