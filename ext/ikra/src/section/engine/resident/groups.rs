//! Which states of a scope may have objects in common.
//!
//! Here: groups of states, by class, and the versions of their keys. States of different groups of a class have none of
//! its objects in common. So many lists of one class may stay on a device at once: none makes columns of another one
//! old. Not here: what becomes of old columns ([`super::Scope::update`]).
//!
//! A new state whose objects of a class lie in several groups joins one of them. States of the others are dropped, as
//! their versions are counted in another way. All was written back before, so nothing is lost.
//! Invariant: no section of the scope is under way while a state is made.

use super::{Compared, Inner, Key, SCOPES, Scope, State, Variant};
use crate::marshal::plan::Plan;
use crate::marshal::trace::Tables;
use crate::ruby::addresses::Addresses;
use crate::ruby::heap::Raw;
use crate::ruby::identity::{RawMap, WordMap};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The newest versions of keys.
#[derive(Default)]
pub(super) struct Versions {
    all: HashMap<Key, u64>,
    /// The keys of each group.
    by_group: WordMap<u64, Vec<Key>>,
}

impl Versions {
    /// That of a key.
    pub(super) fn of(&self, key: &Key) -> u64 {
        self.all.get(key).copied().unwrap_or(0)
    }

    /// A newer one.
    pub(super) fn next(&mut self, key: &Key) -> u64 {
        if let Some(version) = self.all.get_mut(key) {
            *version += 1;
            return *version;
        }
        let groups: HashSet<u64> = key.0.iter().map(|member| member.group).collect();
        groups.into_iter().for_each(|group| self.by_group.entry(group).or_default().push(key.clone()));
        self.all.insert(key.clone(), 1);
        1
    }

    /// Those of all keys of some groups. A key of several groups is there several times.
    pub(super) fn among<'v>(&'v self, groups: &'v RawMap<u64>) -> impl Iterator<Item = (&'v Key, u64)> {
        let keys = groups.values().filter_map(|group| self.by_group.get(group)).flatten();
        keys.map(|key| (key, self.of(key)))
    }
}

impl Inner {
    /// Drops the versions of groups that have no state any more.
    pub(super) fn forget_groups(&mut self) {
        let live: HashSet<u64> = self.states.iter().flat_map(|state| state.groups.values().copied()).collect();
        let Versions { all, by_group } = &mut self.versions;
        by_group.retain(|group, _| live.contains(group));
        all.retain(|key, _| key.0.iter().any(|member| live.contains(&member.group)));
    }
}

impl Scope {
    /// Whether one of its states has objects in common with a state of another scope.
    pub(super) fn meets(&self, state: &State) -> bool {
        let states = self.inner.lock().states.clone();
        states.iter().any(|own| state.meets(own))
    }

    /// By class: the group of a new state. Drops states of other groups that it has objects in common with.
    pub(super) fn groups(&self, plan: &Plan, tables: &Tables) -> RawMap<u64> {
        let states = self.inner.lock().states.clone();
        let mut groups = RawMap::default();
        let mut dropped = HashSet::new();
        for (class, rows) in plan.classes.iter().zip(&tables.classes).filter(|(class, _)| !class.fields.is_empty()) {
            let mut own = Addresses::default();
            own.extend(&rows.objects);
            let mut met: Option<u64> = None;
            for state in &states {
                let Some((group, objects)) = state.group_of(class.raw) else { continue };
                if met == Some(group) || dropped.contains(&group) || !own.contains_any(objects) {
                    continue;
                }
                match met {
                    None => met = Some(group),
                    Some(_) => drop(dropped.insert(group)),
                }
            }
            groups.insert(class.raw, met.unwrap_or_else(|| SCOPES.serial.fetch_add(1, Ordering::Relaxed)));
        }
        drop(states);
        if !dropped.is_empty() {
            let mut inner = self.inner.lock();
            let is_in = |state: &Arc<State>| state.groups.values().any(|group| dropped.contains(group));
            let (gone, keep): (Vec<_>, _) = std::mem::take(&mut inner.states).into_iter().partition(is_in);
            inner.states = keep;
            inner.forget_groups();
            drop(inner);
            super::let_go(gone);
        }
        groups
    }
}

impl State {
    /// By class: its group, and whether the program writes some of its columns.
    pub(in super::super) fn groups(&self) -> impl Iterator<Item = (Raw, (u64, bool))> {
        let Variant { plan, lowered, .. } = &*self.variant;
        self.groups.iter().map(|(class, group)| {
            let fields = plan.class_index.get(class).map(|at| &plan.classes[*at as usize].fields);
            let mut columns =
                fields.into_iter().flatten().flat_map(|field| [field.slot.value, field.slot.tag]).flatten();
            (*class, (*group, columns.any(|column| lowered.program.columns[column.index()].written)))
        })
    }

    /// The group of a class, and its objects.
    fn group_of(&self, class: Raw) -> Option<(u64, &[Raw])> {
        let at = *self.variant.plan.class_index.get(&class)? as usize;
        Some((*self.groups.get(&class)?, &self.tables.classes[at].objects))
    }

    /// Whether it is in a group of another state, and so may have objects in common with it.
    pub(super) fn has_group_of(&self, other: &Self) -> bool {
        self.groups.iter().any(|(class, group)| other.groups.get(class) == Some(group))
    }

    /// Whether it has objects in common with a state of another scope.
    fn meets(&self, other: &Self) -> bool {
        self.compare(other, Compared::Objects, || {
            let classes = self.variant.plan.classes.iter().zip(&self.tables.classes);
            classes.filter(|(class, _)| !class.fields.is_empty()).any(|(class, rows)| {
                let Some((_, objects)) = other.group_of(class.raw) else { return false };
                let mut own = Addresses::default();
                own.extend(&rows.objects);
                own.contains_any(objects)
            })
        })
    }
}
