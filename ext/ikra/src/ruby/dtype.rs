//! Types of the elements of typed arrays.
//!
//! Here: [`Dtype`], its names for Ruby, and how its elements are stored. Not here: arrays
//! ([`crate::buffers::buffer`]), and Ruby's values as elements ([`crate::ruby::encode`]).

use crate::ruby::question::{described, shown};
use ikra_core::ir::Storage;
use ikra_core::types::Prims;
use magnus::{Error, Ruby, Symbol, Value};

/// The type of elements for Ruby, and how they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    I64,
    I32,
    U8,
    F64,
    F32,
    Bool,
}

impl Dtype {
    pub const ALL: [(&'static str, Dtype); 6] = [
        ("i64", Dtype::I64),
        ("i32", Dtype::I32),
        ("u8", Dtype::U8),
        ("f64", Dtype::F64),
        ("f32", Dtype::F32),
        ("bool", Dtype::Bool),
    ];
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, dtype)| *dtype == self).map_or("", |(name, _)| name)
    }
    pub fn storage(self) -> Storage {
        match self {
            Dtype::I64 => Storage::I64,
            Dtype::I32 => Storage::I32,
            Dtype::U8 | Dtype::Bool => Storage::U8,
            Dtype::F64 => Storage::F64,
            Dtype::F32 => Storage::F32,
        }
    }
    /// Whether a column of this storage holds every such element unchanged.
    pub fn fits(self, storage: Storage) -> bool {
        storage == self.storage() || storage.bytes() == 8 || (self.storage(), storage) == (Storage::U8, Storage::I32)
    }
    /// The kinds of value that elements are in a kernel.
    pub fn prims(self) -> Prims {
        match self {
            Dtype::I64 | Dtype::I32 | Dtype::U8 => Prims::INT,
            Dtype::F64 | Dtype::F32 => Prims::FLOAT,
            Dtype::Bool => Prims::BOOL,
        }
    }
    /// The dtype of a name.
    ///
    /// # Errors
    /// ArgumentError for an unknown name.
    pub fn of(ruby: &Ruby, name: Value) -> Result<Self, Error> {
        let given = Symbol::from_value(name).map(Symbol::name).transpose()?;
        let known = Self::ALL.iter().find(|(known, _)| Some(*known) == given.as_deref());
        if let Some((_, dtype)) = known {
            return Ok(*dtype);
        }
        let names: Vec<String> = Self::ALL.iter().map(|(name, _)| format!(":{name}")).collect();
        let message = format!("dtype: {} is not one of {}", described(name, shown)?, names.join(", "));
        Err(Error::new(ruby.exception_arg_error(), message))
    }
    /// Least and greatest value of an Integer dtype.
    pub fn bounds(self) -> (i64, i64) {
        match self {
            Dtype::U8 => (0, 255),
            Dtype::I32 => (i32::MIN.into(), i32::MAX.into()),
            _ => (i64::MIN, i64::MAX),
        }
    }
}
