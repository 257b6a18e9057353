//! The C library's libm, which Ruby's `Math` and Float call, too. So no result differs from Ruby's because of another
//! implementation.
//!
//! Here: the functions by name, and the table from [`MathFn`] to them. Not here: Ruby's corrections around them, which
//! lowering writes as IR.
#![allow(unsafe_code, reason = "declarations of C's <math.h>")]

use crate::ir::MathFn;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

// SAFETY: these are the prototypes of <math.h>; the functions take and return plain numbers and touch no memory but
// errno and the floating-point status. `lgamma_r` writes through its pointer, so it alone is not safe.
unsafe extern "C" {
    pub safe fn sin(x: f64) -> f64;
    pub safe fn cos(x: f64) -> f64;
    pub safe fn tan(x: f64) -> f64;
    pub safe fn asin(x: f64) -> f64;
    pub safe fn acos(x: f64) -> f64;
    pub safe fn atan(x: f64) -> f64;
    pub safe fn atan2(y: f64, x: f64) -> f64;
    pub safe fn sinh(x: f64) -> f64;
    pub safe fn cosh(x: f64) -> f64;
    pub safe fn tanh(x: f64) -> f64;
    pub safe fn asinh(x: f64) -> f64;
    pub safe fn acosh(x: f64) -> f64;
    pub safe fn atanh(x: f64) -> f64;
    pub safe fn exp(x: f64) -> f64;
    pub safe fn log(x: f64) -> f64;
    pub safe fn log2(x: f64) -> f64;
    pub safe fn log10(x: f64) -> f64;
    #[link_name = "cbrt"]
    safe fn linked_cbrt(x: f64) -> f64;
    pub safe fn hypot(x: f64, y: f64) -> f64;
    pub safe fn erf(x: f64) -> f64;
    pub safe fn erfc(x: f64) -> f64;
    pub safe fn pow(x: f64, y: f64) -> f64;
    pub safe fn tgamma(x: f64) -> f64;
    pub safe fn fmod(x: f64, y: f64) -> f64;
    pub safe fn nextafter(x: f64, y: f64) -> f64;
    pub safe fn round(x: f64) -> f64;
    safe fn ldexp(x: f64, exponent: c_int) -> f64;
    fn lgamma_r(x: f64, sign: *mut c_int) -> f64;
}

/// The cube root of libm. Rust's own library has another `cbrt`, which the linker prefers, and which differs from
/// glibc's in the last place. So this one is looked up at run time.
pub extern "C" fn cbrt(x: f64) -> f64 {
    static LIBM: OnceLock<extern "C" fn(f64) -> f64> = OnceLock::new();
    LIBM.get_or_init(|| {
        // SAFETY: the name is a C string, and the call only looks it up.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cbrt".as_ptr()) };
        if found.is_null() {
            return linked_cbrt;
        }
        // SAFETY: a `cbrt` that the process's libraries export is C's, with this prototype; libm is never unloaded.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(f64) -> f64>(found) }
    })(x)
}

/// log |Γ(x)|
pub extern "C" fn lgamma(x: f64) -> f64 {
    let mut sign = 0;
    // SAFETY: `sign` is a live local, written during the call only.
    unsafe { lgamma_r(x, &raw mut sign) }
}

/// `x * 2 ** exponent`; an exponent beyond C's `int` saturates, which changes no result.
pub extern "C" fn load_exponent(x: f64, exponent: i64) -> f64 {
    ldexp(x, exponent.clamp(c_int::MIN.into(), c_int::MAX.into()) as c_int)
}

/// All functions of the table.
pub const ALL: [MathFn; 25] = [
    MathFn::Sin,
    MathFn::Cos,
    MathFn::Tan,
    MathFn::Asin,
    MathFn::Acos,
    MathFn::Atan,
    MathFn::Atan2,
    MathFn::Sinh,
    MathFn::Cosh,
    MathFn::Tanh,
    MathFn::Asinh,
    MathFn::Acosh,
    MathFn::Atanh,
    MathFn::Exp,
    MathFn::Log,
    MathFn::Log2,
    MathFn::Log10,
    MathFn::Cbrt,
    MathFn::Hypot,
    MathFn::Erf,
    MathFn::Erfc,
    MathFn::Pow,
    MathFn::Tgamma,
    MathFn::Lgamma,
    MathFn::Ldexp,
];

/// A function of the table, by the types of its arguments.
#[derive(Clone, Copy)]
pub enum Function {
    One(extern "C" fn(f64) -> f64),
    Two(extern "C" fn(f64, f64) -> f64),
    /// Takes a Float and an Integer.
    Exponent(extern "C" fn(f64, i64) -> f64),
}

/// The implementation of `function`.
pub fn function(function: MathFn) -> Function {
    use Function::{Exponent, One, Two};
    match function {
        MathFn::Sin => One(sin),
        MathFn::Cos => One(cos),
        MathFn::Tan => One(tan),
        MathFn::Asin => One(asin),
        MathFn::Acos => One(acos),
        MathFn::Atan => One(atan),
        MathFn::Atan2 => Two(atan2),
        MathFn::Sinh => One(sinh),
        MathFn::Cosh => One(cosh),
        MathFn::Tanh => One(tanh),
        MathFn::Asinh => One(asinh),
        MathFn::Acosh => One(acosh),
        MathFn::Atanh => One(atanh),
        MathFn::Exp => One(exp),
        MathFn::Log => One(log),
        MathFn::Log2 => One(log2),
        MathFn::Log10 => One(log10),
        MathFn::Cbrt => One(cbrt),
        MathFn::Hypot => Two(hypot),
        MathFn::Erf => One(erf),
        MathFn::Erfc => One(erfc),
        MathFn::Pow => Two(pow),
        MathFn::Tgamma => One(tgamma),
        MathFn::Lgamma => One(lgamma),
        MathFn::Ldexp => Exponent(load_exponent),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_c() {
        let Function::One(f) = function(MathFn::Lgamma) else { panic!("one argument") };
        assert_eq!(f(3.0), 2f64.ln());
        let Function::Two(f) = function(MathFn::Atan2) else { panic!("two arguments") };
        assert_eq!(f(1.0, -1.0), 3.0 * std::f64::consts::FRAC_PI_4);
        let Function::Exponent(f) = function(MathFn::Ldexp) else { panic!("a Float and an Integer") };
        assert_eq!([f(1.5, 4), f(1.0, 1 << 40), f(1.0, -(1 << 40))], [24.0, f64::INFINITY, 0.0]);
    }
}
