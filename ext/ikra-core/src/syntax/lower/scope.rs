//! Resolves names of local variables to [`LocalId`]s, by Ruby's scoping.
//!
//! Here: the stack of scopes of one unit. A block opens a scope that sees the ones around it. A variable belongs to the
//! innermost scope when it is first assigned, unless a scope around already has it.

use crate::syntax::ast::{Local, LocalId, Name, Origin};
use std::collections::{HashMap, HashSet};

pub(super) struct Scopes {
    pub locals: Vec<Local>,
    /// From the unit's own scope to the innermost one; never empty.
    open: Vec<Scope>,
    /// Locals of the code around the unit, and the ids of those that the unit uses.
    around: HashSet<String>,
    captured: HashMap<String, LocalId>,
}

#[derive(Default)]
struct Scope {
    names: HashMap<String, LocalId>,
    /// Variables that are nil each time the scope is entered.
    fresh: Vec<LocalId>,
    /// Whether `it` may mean the parameter of this block.
    allows_it: bool,
    it: Option<LocalId>,
}

impl Scopes {
    pub fn new(around: &[&str]) -> Self {
        Self {
            locals: Vec::new(),
            open: vec![Scope::default()],
            around: around.iter().map(|name| (*name).to_owned()).collect(),
            captured: HashMap::new(),
        }
    }

    pub fn enter(&mut self) {
        self.open.push(Scope::default());
    }

    /// Closes the innermost scope; returns its variables that are not parameters.
    pub fn leave(&mut self) -> Vec<LocalId> {
        self.open.pop().map_or_else(Vec::new, |scope| scope.fresh)
    }

    fn innermost(&mut self) -> &mut Scope {
        self.open.last_mut().expect("the unit's own scope is never left")
    }

    fn new_local(&mut self, name: Name, origin: Origin) -> LocalId {
        self.locals.push(Local { name, origin });
        LocalId::new(self.locals.len() - 1)
    }

    fn is_outermost(&self) -> bool {
        self.open.len() == 1
    }

    /// A parameter of the innermost scope. If several have one name, such as `_`, the first one is read.
    pub fn param(&mut self, name: &str) -> LocalId {
        let origin = if self.is_outermost() { Origin::Param } else { Origin::Inner };
        self.declare(name, origin)
    }

    pub fn declare(&mut self, name: &str, origin: Origin) -> LocalId {
        let id = self.new_local(name.into(), origin);
        self.innermost().names.entry(name.to_owned()).or_insert(id);
        id
    }

    /// A variable of the innermost scope itself: a block-local (`|a; b|`), or one assigned for the first time.
    pub fn own(&mut self, name: &str) -> LocalId {
        let origin = if self.is_outermost() { Origin::Own } else { Origin::Inner };
        let id = self.declare(name, origin);
        self.innermost().fresh.push(id);
        id
    }

    /// A variable without a name.
    pub fn temp(&mut self) -> LocalId {
        let id = self.new_local("".into(), Origin::Temp);
        self.innermost().fresh.push(id);
        id
    }

    /// A variable without a name that belongs to the unit itself, not to an inner block.
    pub fn method_temp(&mut self) -> LocalId {
        self.new_local("".into(), Origin::Temp)
    }

    /// The variable that this name means here, if there is one.
    pub fn find(&mut self, name: &str) -> Option<LocalId> {
        if let Some(id) = self.open.iter().rev().find_map(|scope| scope.names.get(name)) {
            return Some(*id);
        }
        if let Some(id) = self.captured.get(name) {
            return Some(*id);
        }
        if !self.around.contains(name) {
            return None;
        }
        let id = self.new_local(name.into(), Origin::Captured);
        self.captured.insert(name.to_owned(), id);
        Some(id)
    }

    /// The captured local that holds the block of the method around this unit.
    pub fn outer_block(&mut self) -> LocalId {
        let name = crate::syntax::OUTER_BLOCK;
        if let Some(id) = self.captured.get(name) {
            return *id;
        }
        let id = self.new_local(name.into(), Origin::Captured);
        self.captured.insert(name.to_owned(), id);
        id
    }

    /// The variable to assign to.
    pub fn assign(&mut self, name: &str) -> LocalId {
        self.find(name).unwrap_or_else(|| self.own(name))
    }

    /// The variable to read. The parser knows of assignments that we do not walk, in constructs that are refused. A
    /// variable that only they assign is nil until then, and reaching them is an error.
    pub fn read(&mut self, name: &str) -> LocalId {
        self.assign(name)
    }

    pub fn allow_it(&mut self, allow: bool) {
        self.innermost().allows_it = allow;
    }

    /// The parameter that `it` means, if the innermost scope may have one.
    pub fn it(&mut self) -> Option<LocalId> {
        let origin = if self.is_outermost() { Origin::Param } else { Origin::Inner };
        let scope = self.innermost();
        if !scope.allows_it {
            return None;
        }
        if let Some(it) = scope.it {
            return Some(it);
        }
        let id = self.new_local("it".into(), origin);
        self.innermost().it = Some(id);
        Some(id)
    }

    /// Whether `it` was used in the innermost scope, and as which parameter.
    pub fn take_it(&mut self) -> Option<LocalId> {
        self.innermost().it.take()
    }
}
