//! Regular expressions in inference: which one a value is.
//!
//! A Regexp is a value as a lambda is: nothing but the choice of one, known when compiling ([`Ty::procs`]). So it takes
//! no bits, and its tables are constants of the program. Here: numbers of regular expressions, and those of constants
//! and captured variables. Not here: what they match ([`crate::regexp`], and the prelude's methods of String).

use super::Analysis;
use super::blocks::{ProcInfo, ProcKind};
use super::calls::{Answer, Refusal};
use crate::id::ProcId;
use crate::regexp::{Regexp, RegexpSource, Table, Unknown};
use crate::types::Ty;
use crate::world::{Opaque, Root};
use std::sync::Arc;

impl From<Unknown> for Refusal {
    fn from(Unknown(what): Unknown) -> Self {
        Refusal::new(format!("kernels do not know {what}"))
            .because("they follow a table that looks at each character once")
            .advise("write a simpler pattern, compare with == and start_with?, or match before the call")
    }
}

impl Analysis<'_> {
    /// The type of a regular expression.
    ///
    /// # Errors
    /// A construct that kernels do not know.
    pub fn regexp(&mut self, pattern: &RegexpSource) -> Answer<Ty> {
        Ok(Ty::proc(self.regexp_id(pattern)?))
    }

    fn regexp_id(&mut self, pattern: &RegexpSource) -> Result<ProcId, Unknown> {
        if let Some(number) = self.regexps.iter().position(|(known, _)| known.pattern == *pattern) {
            return Ok(ProcId::regexp(number));
        }
        let regexp = Arc::new(Regexp::new(pattern.clone(), self.world.unicode())?);
        let info = ProcInfo::new(Self::BLOCK, ProcKind::Regexp(regexp.clone()));
        self.regexps.push((regexp, info));
        Ok(ProcId::regexp(self.regexps.len() - 1))
    }

    /// The type of a root that is a Regexp.
    pub(super) fn regexp_at(&mut self, root: &Root, opaque: &Opaque) -> Option<Result<Ty, Opaque>> {
        if let Some(id) = self.outside_index.get(root) {
            return Some(Ok(Ty::proc(*id)));
        }
        let pattern = self.world.regexp(root)?;
        Some(match self.regexp_id(&pattern) {
            Ok(id) => {
                self.outside_index.insert(root.clone(), id);
                Ok(Ty::proc(id))
            }
            Err(Unknown(what)) => Err(Opaque { what: format!("a Regexp with {what}"), place: opaque.place.clone() }),
        })
    }

    /// # Panics
    /// If the id is not of a Regexp.
    pub fn regexp_of(&self, id: ProcId) -> &Arc<Regexp> {
        &self.regexps[id.regexp_number().expect("a Regexp")].0
    }

    /// The table of a regular expression.
    ///
    /// # Errors
    /// If it has none.
    pub fn regexp_table(&self, id: ProcId, table: Table) -> Answer<Arc<[u8]>> {
        Ok(self.regexp_of(id).table(table)?)
    }
}
