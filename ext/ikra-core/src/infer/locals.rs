//! The state of all locals on a path, as a persistent vector that paths share.
//!
//! Here: [`Locals`]. Inference copies the environment at every fork and joins two at every merge. With plain vectors, a
//! body would take time proportional to its lines times its variables. A copy shares everything. An assignment copies
//! one leaf and the nodes above it. A join or a comparison looks only at what two paths do not share. Not here: the
//! join of types.

use super::walk::State;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// Entries of a leaf, children of a node.
const WIDTH: usize = 16;
const BITS: u32 = WIDTH.trailing_zeros();

/// A persistent vector. Two of the same length have the same shape.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Locals {
    len: usize,
    /// Levels of nodes above the leaves: as few as `len` needs.
    height: u32,
    root: Arc<Tree>,
}

#[derive(Clone, Debug)]
enum Tree {
    Leaf(Vec<State>),
    Node(Vec<Arc<Tree>>),
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Tree::Leaf(a), Tree::Leaf(b)) => a == b,
            (Tree::Node(a), Tree::Node(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
            }
            _ => false,
        }
    }
}

impl Locals {
    /// A vector of this length whose locals are all unassigned.
    pub fn unset(len: usize) -> Self {
        let mut locals = Locals { len: 0, height: 0, root: Arc::new(Tree::Leaf(Vec::new())) };
        locals.extend_unset(len);
        locals
    }
    pub fn len(&self) -> usize {
        self.len
    }
    /// Appends unassigned locals.
    pub fn extend_unset(&mut self, more: usize) {
        for _ in 0..more {
            if self.len == WIDTH << (self.height * BITS) {
                self.height += 1;
                self.root = Arc::new(Tree::Node(vec![self.root.clone()]));
            }
            push(&mut self.root, self.height, self.len);
            self.len += 1;
        }
    }
    /// Drops all entries from an index on.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        self.len = len;
        cut(&mut self.root, self.height, len);
        while self.height > 0 && len <= WIDTH << ((self.height - 1) * BITS) {
            let Tree::Node(children) = &*self.root else { break };
            let Some(first) = children.first().cloned() else { break };
            self.root = first;
            self.height -= 1;
        }
    }
    /// Joins two vectors entry by entry, up to the shorter length. Entries that are identical stay as they are.
    pub fn join(&self, other: &Self, merge: &mut impl FnMut(&State, &State) -> State) -> Self {
        let len = self.len.min(other.len);
        let (mut a, mut b) = (self.clone(), other.clone());
        a.truncate(len);
        b.truncate(len);
        Locals { root: joined(&a.root, &b.root, merge), ..a }
    }
}

impl Index<usize> for Locals {
    type Output = State;
    fn index(&self, index: usize) -> &State {
        assert!(index < self.len, "local {index} of {}", self.len);
        let mut at = &self.root;
        let mut height = self.height;
        loop {
            match &**at {
                Tree::Leaf(states) => return &states[index % WIDTH],
                Tree::Node(children) => at = &children[slot(index, height)],
            }
            height -= 1;
        }
    }
}

impl IndexMut<usize> for Locals {
    fn index_mut(&mut self, index: usize) -> &mut State {
        assert!(index < self.len, "local {index} of {}", self.len);
        let mut at = &mut self.root;
        let mut height = self.height;
        loop {
            match Arc::make_mut(at) {
                Tree::Leaf(states) => return &mut states[index % WIDTH],
                Tree::Node(children) => at = &mut children[slot(index, height)],
            }
            height -= 1;
        }
    }
}

/// The index of the child that has an entry.
fn slot(index: usize, height: u32) -> usize {
    (index >> (height * BITS)) % WIDTH
}

fn push(tree: &mut Arc<Tree>, height: u32, index: usize) {
    match Arc::make_mut(tree) {
        Tree::Leaf(states) => states.push(State::unset()),
        Tree::Node(children) => {
            if slot(index, height) == children.len() {
                let empty = if height == 1 { Tree::Leaf(Vec::new()) } else { Tree::Node(Vec::new()) };
                children.push(Arc::new(empty));
            }
            push(&mut children[slot(index, height)], height - 1, index);
        }
    }
}

/// Keeps the first `len` entries of a tree, of which at least one must be in it.
fn cut(tree: &mut Arc<Tree>, height: u32, len: usize) {
    match Arc::make_mut(tree) {
        Tree::Leaf(states) => states.truncate(len),
        Tree::Node(children) => {
            let each = WIDTH << ((height - 1) * BITS);
            children.truncate(len.div_ceil(each).max(1));
            let last = children.len() - 1;
            cut(&mut children[last], height - 1, len - last * each);
        }
    }
}

fn joined(a: &Arc<Tree>, b: &Arc<Tree>, merge: &mut impl FnMut(&State, &State) -> State) -> Arc<Tree> {
    if Arc::ptr_eq(a, b) {
        return a.clone();
    }
    match (&**a, &**b) {
        (Tree::Leaf(x), Tree::Leaf(y)) => {
            let states: Vec<State> = x.iter().zip(y).map(|(x, y)| merge(x, y)).collect();
            // keeps the old leaf shared if nothing changed
            if states == *x { a.clone() } else { Arc::new(Tree::Leaf(states)) }
        }
        (Tree::Node(x), Tree::Node(y)) => {
            let children: Vec<Arc<Tree>> = x.iter().zip(y).map(|(x, y)| joined(x, y, merge)).collect();
            let same = children.iter().zip(x).all(|(new, old)| Arc::ptr_eq(new, old));
            if same { a.clone() } else { Arc::new(Tree::Node(children)) }
        }
        _ => unreachable!("two vectors of one length have one shape"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Ty;

    fn set(locals: &mut Locals, at: usize) {
        locals[at] = State { ty: Ty::int(), ..State::unset() };
        locals[at].unset = false;
    }

    #[test]
    fn is_a_vector_whatever_its_length() {
        for len in [0, 1, 15, 16, 17, 255, 256, 257, 4096, 4097, 5000] {
            let mut locals = Locals::unset(len);
            assert_eq!(locals.len(), len);
            for at in (0..len).step_by(7) {
                set(&mut locals, at);
            }
            for at in 0..len {
                assert_eq!(locals[at].unset, at % 7 != 0, "{at} of {len}");
            }
            for shorter in [0, 1, 16, 17, 250, 256, 300, 4096].into_iter().filter(|n| *n <= len) {
                let mut cut = locals.clone();
                cut.truncate(shorter);
                let mut made = Locals::unset(shorter);
                (0..shorter).step_by(7).for_each(|at| set(&mut made, at));
                assert_eq!(cut, made, "{len} to {shorter}");
                cut.extend_unset(len - shorter);
                assert_eq!(cut.len(), len);
                assert!((shorter..len).all(|at| cut[at].unset));
            }
        }
    }

    #[test]
    fn a_join_looks_only_at_what_two_do_not_share() {
        let whole = Locals::unset(1000);
        let (mut a, mut b) = (whole.clone(), whole.clone());
        set(&mut a, 3);
        set(&mut b, 990);
        let mut looked = 0;
        let both = a.join(&b, &mut |x, y| {
            looked += 1;
            if x.unset { y.clone() } else { x.clone() }
        });
        assert!(looked <= 2 * WIDTH, "{looked}");
        assert!(!both[3].unset && !both[990].unset && both[500].unset);
        assert_eq!(whole.join(&whole.clone(), &mut |_, _| unreachable!()), whole);
        let mut longer = a.clone();
        longer.extend_unset(40);
        assert_eq!(longer.join(&a, &mut |x, _| x.clone()), a);
    }
}
