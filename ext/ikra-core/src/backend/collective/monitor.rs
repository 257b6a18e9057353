//! Monitoring: a look at some of the elements, before all are grouped, and the choice of an engine.
//!
//! Here: [`look`], which tells what a [`Sample`] shows, [`Sample::plan`], and [`glance`], for a few elements. Not here:
//! the engines ([`super::table`]).
//!
//! The sample is 1 % of the elements, from 64 places. How many keys differ in all is extrapolated from half of the
//! sample and the whole. Either all keys are equally frequent, or their number grows with a power of the number of
//! elements.
//!
//! Source: M. Mokhtari and others, *Soren: Adaptive MapReduce for Programmable GPUs* (2011), section 4.

use super::sketch::Sketch;
use super::table::{Keys, MOST_CELLS, MOST_PRIVATE, Plan, Seed};
use std::collections::HashMap;
use std::fmt;

/// How elements are grouped. [`super::table`] describes the engines that combine while they insert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// What monitoring chooses.
    #[default]
    Auto,
    Direct,
    Small,
    Hash,
    /// Values stand group by group, in order, before they are combined.
    Group,
}

impl Engine {
    pub const ALL: [Engine; 5] = [Engine::Auto, Engine::Direct, Engine::Small, Engine::Hash, Engine::Group];

    pub fn name(self) -> &'static str {
        match self {
            Engine::Auto => "auto",
            Engine::Direct => "direct",
            Engine::Small => "small",
            Engine::Hash => "hash",
            Engine::Group => "group",
        }
    }
}

/// Places of which elements are looked at.
const PLACES: usize = 64;
/// The sample is one element in so many, within these bounds.
const ONE_IN: usize = 100;
const LEAST: usize = 1 << 12;
const MOST: usize = 1 << 18;
/// With fewer elements nothing is looked at: they are grouped sooner.
const MIN_ELEMENTS: usize = 1 << 15;
/// The words of a sample of so many are counted.
const EXACT: usize = 1 << 14;
/// The hottest key is looked for among so many.
const HOTTEST: usize = 1 << 10;

/// The greatest factor by which the sketch is wrong.
const SKETCH_ERROR: f64 = 1.03;

/// What some of the elements show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// How many there are in all, and how many were looked at.
    pub elements: usize,
    pub seen: usize,
    /// How many keys differ among those seen, and among all, about.
    pub distinct: f64,
    pub estimate: f64,
    /// The least and the greatest Integer, where keys are Integers.
    pub range: Option<(i64, i64)>,
    /// The share of the most frequent key.
    pub hottest: f64,
}

/// How many words differ: counted where there are few, else estimated.
enum Differing {
    Exactly(Vec<u64>),
    About(Box<Sketch>),
}

impl Differing {
    fn of(elements: usize) -> Self {
        if elements <= EXACT { Self::Exactly(Vec::with_capacity(elements)) } else { Self::About(Box::default()) }
    }

    fn add(&mut self, seed: &Seed, word: u64) {
        match self {
            Self::Exactly(words) => words.push(word),
            Self::About(sketch) => sketch.add(seed.hash(word)),
        }
    }

    fn count(&mut self) -> f64 {
        match self {
            Self::Exactly(words) => {
                words.sort_unstable();
                words.dedup();
                words.len() as f64
            }
            Self::About(sketch) => sketch.estimate(),
        }
    }
}

/// Looks at some of the elements. `integers`: words are Integers.
pub fn look<K: Keys + ?Sized>(seed: &Seed, keys: &K, elements: usize, integers: bool) -> Sample {
    let mut sample = Sample { elements, ..Sample::default() };
    if elements < MIN_ELEMENTS {
        sample.range = integers.then(|| range(keys, elements)).flatten();
        return sample;
    }
    let each = (elements / ONE_IN).clamp(LEAST, MOST) / PLACES;
    let (mut differing, mut half) = (Differing::of(each * PLACES), 0.0);
    let (mut least, mut greatest) = (i64::MAX, i64::MIN);
    let mut often: HashMap<u64, u32> = HashMap::new();
    let mut words = vec![0; each];
    // Every other place first, so that both halves come from everywhere.
    for (turn, place) in (0..PLACES).step_by(2).chain((1..PLACES).step_by(2)).enumerate() {
        if turn == PLACES / 2 {
            half = differing.count();
        }
        let first = ((elements - each) as u64 * place as u64 / (PLACES as u64 - 1)) as usize;
        if !keys.words(first, &mut words) {
            return sample;
        }
        for word in &words {
            differing.add(seed, *word);
            least = least.min(*word as i64);
            greatest = greatest.max(*word as i64);
        }
        for word in words.iter().take(HOTTEST / PLACES) {
            *often.entry(*word).or_default() += 1;
        }
    }
    sample.seen = each * PLACES;
    sample.distinct = differing.count().min(sample.seen as f64).max(1.0);
    let error = if matches!(differing, Differing::Exactly(_)) { 1.0 } else { SKETCH_ERROR };
    sample.estimate = estimate(half, sample.distinct, error, sample.seen as f64, elements as f64);
    sample.hottest =
        f64::from(often.values().copied().max().unwrap_or(0)) / (each.min(HOTTEST / PLACES) * PLACES) as f64;
    sample.range = integers.then_some((least, greatest));
    sample
}

/// The number of places at which [`glance`] looks.
const GLANCES: usize = 16;
/// At most one of this number of elements is looked at.
const GLANCED: usize = 16;
/// The most elements that it looks at.
const MOST_GLANCED: usize = 1 << 10;

/// Whether there seem to be at least half as many keys as elements, among elements that are too few for [`look`].
pub fn glance<K: Keys + ?Sized>(keys: &K, elements: usize) -> bool {
    let each = (elements / GLANCED).min(MOST_GLANCED) / GLANCES;
    let mut words = vec![0; each * GLANCES];
    let pieces = words.chunks_mut(each.max(1)).zip((0..GLANCES).step_by(2).chain((1..GLANCES).step_by(2)));
    for (words, place) in pieces {
        if !keys.words((elements - each) * place / (GLANCES - 1), words) {
            return false;
        }
    }
    fn differing(words: &mut [u64]) -> f64 {
        words.sort_unstable();
        words.chunk_by(|one, other| one == other).count() as f64
    }
    let half = differing(&mut words[..each * GLANCES / 2]);
    let distinct = differing(&mut words);
    each > 0 && estimate(half, distinct, 1.0, words.len() as f64, elements as f64) * 2.0 > elements as f64
}

/// The least and the greatest Integer of a few elements.
fn range<K: Keys + ?Sized>(keys: &K, elements: usize) -> Option<(i64, i64)> {
    let (mut words, mut range) = ([0; 64], None);
    for first in (0..elements).step_by(words.len()) {
        let words = &mut words[..(elements - first).min(64)];
        if !keys.words(first, words) {
            return None;
        }
        for word in words.iter().map(|word| *word as i64) {
            let (least, greatest) = range.unwrap_or((word, word));
            range = Some((word.min(least), word.max(greatest)));
        }
    }
    range
}

/// How many keys differ among all elements, where so many do in half of a sample and in the whole of it.
/// `error`: by what factor these may be wrong.
fn estimate(half: f64, distinct: f64, error: f64, seen: f64, all: f64) -> f64 {
    // With so few repetitions nobody can tell how many keys there are.
    if distinct * error > seen * 0.999 {
        return all;
    }
    // If all keys are equally frequent, this many of `keys` are among `seen` elements.
    let found = |keys: f64, seen: f64| keys * (1.0 - (-seen / keys).exp());
    let (mut low, mut high) = (distinct, all.max(distinct));
    for _ in 0..60 {
        let keys = (low * high).sqrt();
        if found(keys, seen) < distinct { low = keys } else { high = keys }
    }
    if found(high, seen / 2.0) < half * error.max(1.02) {
        return found(high, all);
    }
    // Else some keys are rare. Then the number of those found grows with a power of the number of elements.
    let growth = (distinct / half.max(1.0)).clamp(1.0, 2.0).log2();
    (distinct * (all / seen).powf(growth)).min(all)
}

impl Sample {
    /// The cells of Integers around those seen.
    pub fn cells(&self) -> Option<(u64, usize)> {
        let (least, greatest) = self.range?;
        let width = u64::try_from(i128::from(greatest) - i128::from(least) + 1).ok()?;
        // a little more on both sides, for those that were not seen
        let more = width / 16 + 64;
        let cells = width.saturating_add(2 * more);
        (cells <= MOST_CELLS as u64).then(|| ((least as u64).wrapping_sub(more), cells as usize))
    }

    /// The plan of an engine. [`Engine::Direct`] without a small range of Integers is [`Engine::Small`].
    pub fn plan(&self, engine: Engine) -> Plan {
        match engine {
            Engine::Auto | Engine::Group => self.plan(self.choice()),
            Engine::Direct => Plan { direct: self.cells(), ..Plan::SMALL },
            Engine::Small => Plan::SMALL,
            Engine::Hash => Plan::HASH,
        }
    }

    /// The engine that should serve best.
    pub fn choice(&self) -> Engine {
        if self.cells().is_some_and(|(_, cells)| cells < self.elements / 4) {
            return Engine::Direct;
        }
        let many = self.estimate > MOST_PRIVATE as f64 && self.hottest < 0.05;
        if many { Engine::Hash } else { Engine::Small }
    }

    /// Whether there seem to be at least half as many keys as elements.
    pub fn many_differ(&self) -> bool {
        self.seen > 0 && self.estimate * 2.0 > self.elements as f64
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.seen == 0 {
            return write!(f, "too few elements to look at some first");
        }
        write!(f, "{} elements seen, about {:.0} keys in all", self.seen, self.estimate)?;
        if let Some((least, greatest)) = self.range {
            write!(f, ", from {least} to {greatest}")?;
        }
        write!(f, ", the most frequent {:.0} %", self.hottest * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Random;
    use super::*;

    fn sample(word: impl Fn(u64, usize) -> u64) -> Sample {
        let mut random = Random(4);
        let words: Vec<u64> = (0..1 << 20).map(|i| word(random.word(), i)).collect();
        look(&Seed::default(), &words[..], words.len(), true)
    }

    #[test]
    fn the_engine_follows_the_keys() {
        let few = sample(|random, _| random % 1000);
        assert_eq!(few.choice(), Engine::Direct);
        assert!((900.0..1100.0).contains(&few.estimate), "{few}");
        assert_eq!(few.range, Some((0, 999)));
        let negative = sample(|random, _| (random % 100).wrapping_sub(50));
        assert_eq!((negative.choice(), negative.range), (Engine::Direct, Some((-50, 49))));
        let far = sample(|random, _| random % 1000 * 1_000_003);
        assert_eq!(far.choice(), Engine::Small);
        for kinds in [3000, 30_000, 300_000] {
            let even = sample(|random, _| random % kinds);
            let ratio = even.estimate / kinds as f64;
            assert!((0.5..2.0).contains(&ratio), "{kinds}: {even}");
        }
        let many = sample(|random, _| random);
        assert_eq!(many.choice(), Engine::Hash);
        assert!(many.many_differ() && !few.many_differ());
        let hot = sample(|random, i| if i % 2 == 0 { 7 } else { random });
        assert_eq!(hot.choice(), Engine::Small);
        assert!((0.4..0.6).contains(&hot.hottest), "{hot}");
    }

    #[test]
    fn a_glance_tells_many_keys_from_few() {
        for n in [0, 1, 255, 512, 3000, 30_000] {
            let mut random = Random(n as u64);
            let words: Vec<u64> = (0..n).map(|_| random.word()).collect();
            assert_eq!(glance(&words[..], n), n >= 256, "{n}");
            let few: Vec<u64> = words.iter().map(|word| word % (n as u64 / 16).max(1)).collect();
            assert!(!glance(&few[..], n), "{n}");
        }
    }

    #[test]
    fn a_forced_engine_is_taken() {
        let sample = sample(|random, _| random % 1000);
        assert_eq!(sample.plan(Engine::Hash), Plan::HASH);
        assert_eq!(sample.plan(Engine::Small), Plan::SMALL);
        assert!(sample.plan(Engine::Direct).direct.is_some());
        assert_eq!(Sample::default().plan(Engine::Auto), Plan::SMALL);
    }
}
