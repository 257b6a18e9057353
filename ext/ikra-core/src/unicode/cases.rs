//! The table of a change of case.
//!
//! # What its bytes contain
//!
//! Numbers have their low byte first.
//!
//! * 0 and 1: the number of blocks of 64 characters. Later characters stay what they are.
//! * 2 to 4: where the entries begin. 5 to 7: where the record with number 0 would begin, 8: the bytes of a record.
//! * From 9 on: for each block two bytes, its number among the entries.
//! * Entries: 64 of a block, two bytes each. 0: the character stays. Else the number of a record.
//! * Records: the number of bytes that the character becomes, and these bytes.

use super::{Change, Unicode};
use std::collections::HashMap;

const HEAD: usize = 9;
const BLOCK: usize = 64;

/// The table of a change of case, for all characters.
pub fn case_table(unicode: &dyn Unicode, change: Change) -> Vec<u8> {
    let mut becomes: Vec<(usize, String)> = Vec::new();
    let mut made = String::new();
    for c in unicode.with_case().into_iter().flat_map(|(from, to)| from..=to) {
        made.clear();
        unicode.change(change, c, &mut made);
        if !made.chars().eq([c]) {
            becomes.push((u32::from(c) as usize, made.clone()));
        }
    }
    let mut entries: Vec<u16> = Vec::new();
    let mut numbers = Vec::new();
    let mut known: HashMap<Vec<u16>, u16> = HashMap::new();
    let blocks = becomes.last().map_or(0, |(code, _)| code / BLOCK + 1);
    let mut next = 0;
    for block in 0..blocks {
        let mut row = vec![0_u16; BLOCK];
        while let Some((code, _)) = becomes.get(next).filter(|(code, _)| code / BLOCK == block) {
            next += 1;
            row[code % BLOCK] = next as u16;
        }
        let fresh = known.len() as u16;
        numbers.push(*known.entry(row).or_insert_with_key(|row| {
            entries.extend(row);
            fresh
        }));
    }
    let width = 1 + becomes.iter().map(|(_, made)| made.len()).max().unwrap_or(0);
    let first_entry = HEAD + 2 * blocks;
    let records = first_entry + 2 * entries.len();
    let mut table = Vec::with_capacity(records + width * becomes.len());
    table.extend(&(blocks as u16).to_le_bytes());
    table.extend(&(first_entry as u32).to_le_bytes()[..3]);
    table.extend(&((records - width) as u32).to_le_bytes()[..3]);
    table.push(width as u8);
    table.extend(numbers.iter().chain(&entries).flat_map(|n| n.to_le_bytes()));
    for (_, made) in &becomes {
        table.push(made.len() as u8);
        table.extend(made.as_bytes());
        table.resize(table.len() + width - 1 - made.len(), 0);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unicode::{Ranges, Rusts, every_char};

    /// What the prelude's loop does with a table.
    fn looked_up(table: &[u8], c: char) -> Option<String> {
        let pair = |at: usize| usize::from(u16::from_le_bytes([table[at], table[at + 1]]));
        let code = u32::from(c) as usize;
        if code / BLOCK >= pair(0) {
            return None;
        }
        let three = |at: usize| pair(at) | usize::from(table[at + 2]) << 16;
        let number = pair(three(2) + 2 * (pair(HEAD + 2 * (code / BLOCK)) * BLOCK + code % BLOCK));
        let record = three(5) + number * usize::from(table[8]);
        let text = || table[record + 1..][..usize::from(table[record])].to_vec();
        (number > 0).then(|| String::from_utf8(text()).expect("UTF-8"))
    }

    #[test]
    fn a_table_says_what_each_character_becomes() {
        for change in [Change::Upper, Change::Lower, Change::Title, Change::Swap, Change::Fold] {
            let table = case_table(&Rusts, change);
            assert!(table.len() < 40_000, "{change:?}: {}", table.len());
            for c in every_char() {
                let mut made = String::new();
                Rusts.change(change, c, &mut made);
                assert_eq!(looked_up(&table, c).unwrap_or_else(|| c.into()), made, "{change:?} of {c:?}");
            }
        }
    }

    #[test]
    fn a_table_without_changes_changes_nothing() {
        struct Nothing;
        impl Unicode for Nothing {
            fn bracket(&self, _: &str) -> Option<Ranges> {
                None
            }
            fn words(&self) -> Ranges {
                Vec::new()
            }
            fn property(&self, _: &str) -> Option<Ranges> {
                None
            }
            fn with_case(&self) -> Ranges {
                Vec::new()
            }
            fn change(&self, _: Change, from: char, out: &mut String) {
                out.push(from);
            }
            fn folds(&self) -> Vec<(char, String)> {
                Vec::new()
            }
        }
        assert_eq!(looked_up(&case_table(&Nothing, Change::Upper), 'a'), None);
    }
}
