//! Lowers a typed tree to the IR. This is the only place that implements Ruby's semantics.
//!
//! Here: [`Cx`], which all parts of the lowering share. The parts are:
//!
//! * [`section`]: the program around the block
//! * `body`: one body's control flow and variables
//! * `calls`: dispatch, builtins, iterators
//! * `blocks`: inlined methods, `yield`
//! * `compare`: comparisons that call other methods
//! * `made`: new objects and arrays
//! * `append`: arrays that grow
//! * `slots`: ivars and elements
//! * `strings`: primitives of Strings
//! * [`tables`]: columns and parameters
//! * [`value`]: the representation of values
//! * [`numbers`]: methods of Ruby's numbers
//! * `wide`: remainders of numbers beyond 64 bits
//! * `rescue`: exceptions, raised and rescued

mod append;
mod blocks;
mod body;
mod calls;
mod compare;
mod made;
pub mod numbers;
mod rescue;
pub mod section;
mod slots;
mod strings;
pub mod tables;
pub mod value;
mod wide;

use crate::config::CodeOptions;
use crate::id::ClassId;
use crate::ir::build::Builder;
use crate::ir::{Func, FuncId, Lowered, Rescued, Site, SiteId, Trap};
use crate::types::Repr;
use std::collections::HashMap;

/// Data that the functions of one program share while they are being lowered.
#[derive(Default)]
pub struct Shared {
    pub options: CodeOptions,
    pub sites: Vec<Site>,
    /// The sites of each line.
    sites_of_line: HashMap<u32, Vec<SiteId>>,
    pub funcs: Vec<Func>,
    /// Ikra's own functions by name, made at their first call.
    helpers: HashMap<&'static str, FuncId>,
    /// Functions about exceptions, which a pass completes.
    rescued: Rescued,
    /// For each test among them: the class, whether it must be exact, and the function.
    class_tests: Vec<(ClassId, bool, FuncId)>,
}

/// A function that is being lowered: the cursor, and its position in the Ruby source.
pub struct Cx<'p> {
    pub b: Builder,
    pub shared: &'p mut Shared,
    /// Ruby file and line of the current expression; new traps get this position.
    pub path: String,
    pub line: u32,
}

impl Cx<'_> {
    /// A site at the current position.
    pub fn site(&mut self, trap: Trap, operands: Vec<Repr>) -> SiteId {
        let site = Site { trap, path: self.path.clone(), line: self.line, operands };
        let here = self.shared.sites_of_line.entry(site.line).or_default();
        if let Some(known) = here.iter().find(|s| self.shared.sites[s.index()] == site) {
            return *known;
        }
        let id = SiteId::new(self.shared.sites.len());
        here.push(id);
        self.shared.sites.push(site);
        id
    }
    /// A function of Ikra's own (integer power, greatest common divisor…), built at its first use.
    pub fn helper(&mut self, name: &'static str, build: impl FnOnce() -> Func) -> FuncId {
        if let Some(id) = self.shared.helpers.get(name) {
            return *id;
        }
        let id = FuncId::new(self.shared.funcs.len());
        self.shared.funcs.push(build());
        self.shared.helpers.insert(name, id);
        id
    }
}
