//! Sets of objects, by their addresses.
//!
//! Here: [`Addresses`], of a list of objects, which answers whether another list has some of them. Not here: numbers of
//! objects ([`super::identity`]).
//! Invariant: the objects are alive and pinned as long as the set is used.

use super::heap::Raw;
use super::identity::RawMap;
use once_cell::unsync::OnceCell;

/// Addresses of objects.
#[derive(Default)]
pub struct Addresses {
    all: Vec<Raw>,
    /// A bit for each address, by its page. Mostly objects of a list lie in few pages. Made at the first look-up.
    pages: OnceCell<RawMap<Page>>,
}

/// The bits of the words of a page.
type Page = [u64; PAGE / 8 / 64];

const PAGE: usize = 4096;

impl Addresses {
    /// Adds some. Nothing was looked up before.
    pub fn extend(&mut self, more: &[Raw]) {
        self.all.extend_from_slice(more);
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether it has this one.
    pub fn contains(&self, address: Raw) -> bool {
        self.contains_any(&[address])
    }

    /// Whether it has one of these.
    pub fn contains_any(&self, others: &[Raw]) -> bool {
        if self.all.is_empty() || others.is_empty() {
            return false;
        }
        let pages = self.pages.get_or_init(|| {
            let mut pages = RawMap::default();
            let (mut at, mut bits) = (place(self.all[0]).0, Page::default());
            for address in &self.all {
                let (page, word, bit) = place(*address);
                if page != at {
                    add(&mut pages, at, &bits);
                    (at, bits) = (page, Page::default());
                }
                bits[word] |= bit;
            }
            add(&mut pages, at, &bits);
            pages
        });
        let (mut at, mut bits) = (Raw::MAX, None);
        others.iter().any(|address| {
            let (page, word, bit) = place(*address);
            if page != at {
                (at, bits) = (page, pages.get(&page));
            }
            bits.is_some_and(|bits| bits[word] & bit != 0)
        })
    }
}

fn add(pages: &mut RawMap<Page>, page: Raw, more: &Page) {
    let bits = pages.entry(page).or_default();
    bits.iter_mut().zip(more).for_each(|(bits, more)| *bits |= more);
}

/// The page of an address, and its bit there.
fn place(address: Raw) -> (Raw, usize, u64) {
    let word = address as usize % PAGE / 8;
    (address / PAGE as Raw, word / 64, 1 << (word % 64))
}
