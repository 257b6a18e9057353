//! Ruby's own tables of Unicode.
//!
//! Here: the answers to [`ikra_core::unicode`], from the functions of Ruby's encoding UTF-8, which its regular
//! expressions and its methods of String call, too. Not here: what the compiler makes of them.
#![allow(unsafe_code, reason = "Ruby gives its encodings as tables of C functions")]

use ikra_core::unicode::{Change, Ranges, Unicode, ranges};
use std::ffi::{c_int, c_void};

/// The Ruby that runs.
pub struct Rubys;

/// The classes in brackets, by the numbers that Ruby gives them.
const BRACKETS: [(&str, u32); 14] = [
    ("alnum", rb_sys::ONIGENC_CTYPE_ALNUM),
    ("alpha", rb_sys::ONIGENC_CTYPE_ALPHA),
    ("ascii", rb_sys::ONIGENC_CTYPE_ASCII),
    ("blank", rb_sys::ONIGENC_CTYPE_BLANK),
    ("cntrl", rb_sys::ONIGENC_CTYPE_CNTRL),
    ("digit", rb_sys::ONIGENC_CTYPE_DIGIT),
    ("graph", rb_sys::ONIGENC_CTYPE_GRAPH),
    ("lower", rb_sys::ONIGENC_CTYPE_LOWER),
    ("print", rb_sys::ONIGENC_CTYPE_PRINT),
    ("punct", rb_sys::ONIGENC_CTYPE_PUNCT),
    ("space", rb_sys::ONIGENC_CTYPE_SPACE),
    ("upper", rb_sys::ONIGENC_CTYPE_UPPER),
    ("word", rb_sys::ONIGENC_CTYPE_WORD),
    ("xdigit", rb_sys::ONIGENC_CTYPE_XDIGIT),
];

/// The flags of each change.
fn flags(change: Change) -> u32 {
    match change {
        Change::Upper => rb_sys::ONIGENC_CASE_UPCASE,
        Change::Lower => rb_sys::ONIGENC_CASE_DOWNCASE,
        Change::Title => rb_sys::ONIGENC_CASE_UPCASE | rb_sys::ONIGENC_CASE_TITLECASE,
        Change::Swap => rb_sys::ONIGENC_CASE_UPCASE | rb_sys::ONIGENC_CASE_DOWNCASE,
        Change::Fold => rb_sys::ONIGENC_CASE_FOLD,
    }
}

/// More bytes than any one character becomes.
const ROOM: usize = 64;

/// The encoding, whose functions only read constant tables. They allocate nothing and raise nothing, so any thread may
/// call them, also without the GVL.
fn utf8() -> &'static rb_sys::OnigEncodingTypeST {
    // SAFETY: Ruby's encoding UTF-8 is a constant of the program, which Ruby never changes or frees.
    unsafe { &*rb_sys::rb_utf8_encoding().cast_const() }
}

/// The characters of the class that has a number.
fn of_class(number: c_int) -> Option<Ranges> {
    let (mut single, mut table) = (0, std::ptr::null());
    let number = rb_sys::OnigCtype::try_from(number).ok()?;
    // SAFETY: the function writes to both places, and `table` becomes a constant of Ruby's: the number of ranges, then
    // two code points for each. A status other than 0 leaves it.
    let codes = unsafe {
        if utf8().get_ctype_code_range?(number, &raw mut single, &raw mut table, utf8()) != 0 || table.is_null() {
            return None;
        }
        std::slice::from_raw_parts(table.add(1), 2 * *table as usize)
    };
    Some(codes.chunks_exact(2).flat_map(|pair| chars(pair[0], pair[1])).collect())
}

/// The characters of a range of code points: surrogates are none.
fn chars(from: u32, to: u32) -> impl Iterator<Item = (char, char)> {
    const SURROGATES: (u32, u32) = (0xd800, 0xdfff);
    let below = (from, to.min(SURROGATES.0 - 1));
    let above = (from.max(SURROGATES.1 + 1), to.min(char::MAX.into()));
    [below, above].into_iter().filter_map(|(from, to)| {
        let pair = (char::from_u32(from)?, char::from_u32(to)?);
        (from <= to).then_some(pair)
    })
}

/// # Safety
/// `to` must have `length` code points, and `all` must be the vector that [`Rubys::folds`] fills.
unsafe extern "C" fn take_fold(from: u32, to: *mut u32, length: c_int, all: *mut c_void) -> c_int {
    // SAFETY: as the function demands. `folds` does not touch the vector until Ruby returns.
    let (to, all) = unsafe {
        (std::slice::from_raw_parts(to, usize::try_from(length).unwrap_or(0)), &mut *all.cast::<Vec<(char, String)>>())
    };
    let to: Option<String> = to.iter().map(|code| char::from_u32(*code)).collect();
    all.extend(char::from_u32(from).zip(to));
    0
}

impl Unicode for Rubys {
    fn bracket(&self, name: &str) -> Option<Ranges> {
        let (_, number) = BRACKETS.iter().find(|(known, _)| *known == name)?;
        of_class(c_int::try_from(*number).ok()?)
    }

    fn words(&self) -> Ranges {
        let asked = utf8().is_code_ctype.expect("UTF-8 has classes");
        // SAFETY: the function looks up a constant table.
        let holds = |code: u32| unsafe { asked(code, rb_sys::ONIGENC_CTYPE_WORD, utf8()) != 0 };
        // below 256 the table is another one, with more characters than `[:word:]` has
        let mut all = ranges((0..=u8::MAX).filter(|byte| holds((*byte).into())).map(char::from));
        let beyond = self.bracket("word").unwrap_or_default().into_iter().filter(|(_, to)| *to > '\u{ff}');
        all.extend(beyond.map(|(from, to)| (from.max('\u{100}'), to)));
        all
    }

    fn property(&self, name: &str) -> Option<Ranges> {
        let bytes = name.as_bytes().as_ptr_range();
        // SAFETY: the function reads the bytes between the two pointers.
        let number = unsafe { utf8().property_name_to_ctype?(utf8(), bytes.start, bytes.end) };
        of_class(number)
    }

    fn with_case(&self) -> Ranges {
        let known = ["Changes_When_Casemapped", "Changes_When_Casefolded"].map(|name| self.property(name));
        match known {
            [Some(mut mapped), Some(folded)] => {
                mapped.extend(folded);
                mapped.sort_unstable();
                merged(mapped)
            }
            _ => vec![('\0', char::MAX)],
        }
    }

    fn change(&self, change: Change, from: char, out: &mut String) {
        let (mut bytes, mut made) = ([0_u8; 4], [0_u8; ROOM]);
        let text = from.encode_utf8(&mut bytes).as_bytes().as_ptr_range();
        let (mut flags, mut at) = (flags(change), text.start);
        let room = made.as_mut_ptr_range();
        let map = utf8().case_map.expect("UTF-8 has cases");
        // SAFETY: the function reads one character from `at` to the end of the text, and writes what it becomes to
        // `made`, which has room for it: Unicode gives at most three characters.
        let length = unsafe { map(&raw mut flags, &raw mut at, text.end, room.start, room.end, utf8()) };
        let made = usize::try_from(length).ok().and_then(|length| made.get(..length));
        match made.map(std::str::from_utf8) {
            Some(Ok(made)) => out.push_str(made),
            _ => out.push(from),
        }
    }

    fn folds(&self) -> Vec<(char, String)> {
        let mut all: Vec<(char, String)> = Vec::new();
        if let Some(apply) = utf8().apply_all_case_fold {
            // SAFETY: Ruby calls `take_fold` with code points that are its own, and with this vector.
            unsafe { apply(rb_sys::ONIGENC_CASE_FOLD_MIN, Some(take_fold), (&raw mut all).cast(), utf8()) };
        }
        all
    }
}

/// Ranges that may overlap, in order, as ranges that do not.
fn merged(all: Ranges) -> Ranges {
    let mut merged: Ranges = Vec::new();
    for (from, to) in all {
        match merged.last_mut() {
            Some((_, last)) if from <= *last => *last = to.max(*last),
            _ => merged.push((from, to)),
        }
    }
    merged
}
