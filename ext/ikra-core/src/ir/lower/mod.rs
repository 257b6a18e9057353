//! A typed tree to the IR: the one place where Ruby's semantics are.
//!
//! Here: [`Cx`], what all parts of the lowering share. [`section`]: the program around the block; `body`: one body's
//! control flow and variables; `calls`: dispatch, builtins, iterators; `blocks`: inlined methods, `yield`; `compare`: comparisons that call others;
//! `made`: new objects and arrays; `slots`: ivars and elements; [`tables`]: columns
//! and parameters; [`value`]: how values are held; [`numbers`]: what Ruby's numbers do;
//! `wide`: remainders of what is beyond 64 bits; `rescue`: exceptions, raised and rescued.

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

use super::build::Builder;
use super::{Func, FuncId, Lowered, Rescued, Site, SiteId, Trap};
use crate::config::CodeOptions;
use crate::id::ClassId;
use crate::types::Repr;
use std::collections::HashMap;

/// What the functions of one program share while they are being lowered.
#[derive(Default)]
pub struct Shared {
    pub options: CodeOptions,
    pub sites: Vec<Site>,
    /// Those of each line.
    sites_of_line: HashMap<u32, Vec<SiteId>>,
    pub funcs: Vec<Func>,
    /// Functions of Ikra's own, by name, made when first called for.
    helpers: HashMap<&'static str, FuncId>,
    /// Functions about exceptions, which a pass makes.
    rescued: Rescued,
    /// What the tests among them ask for.
    class_tests: Vec<(ClassId, bool, FuncId)>,
}

/// A function being lowered: the cursor, and where in the Ruby source it stands.
pub struct Cx<'p> {
    pub b: Builder,
    pub shared: &'p mut Shared,
    /// Ruby file and line of the expression being lowered; traps made now carry it.
    pub path: String,
    pub line: u32,
}

impl Cx<'_> {
    /// A site at the current place.
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
