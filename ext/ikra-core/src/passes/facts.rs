//! Knowledge about registers, carried along structured control flow.
//!
//! Here: [`Facts`], one fact per slot (a register, or whatever else a pass numbers), and the rules for branches, blocks
//! and loops. A pass walks statements in order and adds facts; where paths meet, facts that differ are joined. Costs
//! are proportional to the number of new facts, not to the number of slots.
//!
//! ```text
//! if:    m = mark(); walk then; a = edge(m); undo(m); walk else; b = edge(m); undo(m); merge([a, b])
//! block: open(L); walk; close_block(L)          a break does: break_to(L)
//! loop:  open(L); forget what the body assigns; walk; close_loop(L)
//! ```

use crate::ir::LabelId;

/// A fact about one slot.
pub trait Fact: Clone {
    /// What holds of `slot` when `self` or `other` holds.
    fn join(&self, other: &Self, fresh: &mut u32) -> Self;
}

/// The facts that changed since a mark, at the end of one path: slots with their facts.
pub type Edge<F> = Vec<(u32, F)>;

pub struct Facts<F> {
    now: Vec<F>,
    /// Slots that were set, with the facts before.
    log: Vec<(u32, F)>,
    open: Vec<Open<F>>,
    reached: bool,
    /// Numbers for facts that need to differ from all others.
    pub fresh: u32,
}

struct Open<F> {
    label: LabelId,
    mark: usize,
    edges: Vec<Edge<F>>,
}

impl<F: Fact> Facts<F> {
    pub fn new(initial: Vec<F>) -> Self {
        Self { now: initial, log: Vec::new(), open: Vec::new(), reached: true, fresh: 0 }
    }
    pub fn get(&self, slot: usize) -> &F {
        &self.now[slot]
    }
    pub fn set(&mut self, slot: usize, fact: F) {
        let before = std::mem::replace(&mut self.now[slot], fact);
        self.log.push((slot as u32, before));
    }
    /// A new slot.
    pub fn push(&mut self, fact: F) {
        self.now.push(fact);
    }
    /// Whether control reaches this point.
    pub fn reached(&self) -> bool {
        self.reached
    }
    /// Control does not reach what follows.
    pub fn end(&mut self) {
        self.reached = false;
    }
    pub fn mark(&self) -> usize {
        self.log.len()
    }
    /// The facts that this path has added since the mark. None: control ended on it.
    pub fn edge(&self, mark: usize) -> Option<Edge<F>> {
        if !self.reached {
            return None;
        }
        let mut slots: Vec<u32> = self.log[mark..].iter().map(|(slot, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        Some(slots.into_iter().map(|slot| (slot, self.now[slot as usize].clone())).collect())
    }
    /// Forgets everything since the mark; control is at the mark again.
    pub fn undo(&mut self, mark: usize) {
        while self.log.len() > mark {
            if let Some((slot, before)) = self.log.pop() {
                self.now[slot as usize] = before;
            }
        }
        self.reached = true;
    }
    /// Continues where these paths meet. The caller has undone to the mark where all of them began.
    pub fn merge(&mut self, edges: &[Edge<F>]) {
        let Some((first, others)) = edges.split_first() else {
            self.reached = false;
            return;
        };
        self.reached = true;
        if others.is_empty() {
            first.iter().for_each(|(slot, fact)| self.set(*slot as usize, fact.clone()));
            return;
        }
        let mut slots: Vec<u32> = edges.iter().flatten().map(|(slot, _)| *slot).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut cursors = vec![0; edges.len()];
        let joined: Vec<(u32, F)> = slots
            .into_iter()
            .map(|slot| {
                let mut fact: Option<F> = None;
                for (edge, cursor) in edges.iter().zip(&mut cursors) {
                    let here = match edge.get(*cursor) {
                        Some((s, fact)) if *s == slot => {
                            *cursor += 1;
                            fact
                        }
                        _ => &self.now[slot as usize],
                    };
                    fact = Some(fact.map_or_else(|| here.clone(), |fact| fact.join(here, &mut self.fresh)));
                }
                (slot, fact.unwrap_or_else(|| self.now[slot as usize].clone()))
            })
            .collect();
        joined.into_iter().for_each(|(slot, fact)| self.set(slot as usize, fact));
    }
    /// Enters a `Block` or `Loop`.
    pub fn open(&mut self, label: LabelId) {
        self.open.push(Open { label, mark: self.mark(), edges: Vec::new() });
    }
    /// Leaves for the end of the open label.
    pub fn break_to(&mut self, label: LabelId) {
        if let Some(at) = self.open.iter().rposition(|o| o.label == label) {
            let edge = self.edge(self.open[at].mark);
            self.open[at].edges.extend(edge);
        }
        self.end();
    }
    /// Behind a `Block`: its breaks and its end meet.
    pub fn close_block(&mut self) {
        self.close(true);
    }
    /// Behind a `Loop`: its breaks meet.
    pub fn close_loop(&mut self) {
        self.close(false);
    }
    /// Begins a walk whose result is discarded.
    pub fn begin_trial(&mut self) -> Vec<usize> {
        self.open.iter().map(|o| o.edges.len()).collect()
    }
    /// Ends such a walk: forgets the breaks that it made, and closes what it opened.
    pub fn end_trial(&mut self, edges: Vec<usize>) {
        self.open.truncate(edges.len());
        self.open.iter_mut().zip(edges).for_each(|(open, count)| open.edges.truncate(count));
    }
    fn close(&mut self, falls_out: bool) {
        if let Some(mut open) = self.open.pop() {
            if falls_out {
                open.edges.extend(self.edge(open.mark));
            }
            self.undo(open.mark);
            self.merge(&open.edges);
        }
    }
}
