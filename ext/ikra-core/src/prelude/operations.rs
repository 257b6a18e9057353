//! Methods around a section's block that pass on several values: one method for each number of values.
//!
//! Here: their text. Not here: the other methods of this kind (`operations.rb`, which also explains them).

use std::fmt::Write;

/// The most lists that `pcombine` and `pzip` take besides the receiver.
pub const MAX_LISTS: usize = 8;
/// The most dimensions of `Array.pnew`.
pub const MAX_DIMENSIONS: usize = 6;
/// The most neighbours that `pstencil` passes as separate values.
pub const MAX_NEIGHBOURS: usize = 32;
/// The most dimensions of `pstencil`.
pub const MAX_STENCIL_DIMENSIONS: usize = 3;

/// The text of all these methods.
pub fn several() -> String {
    let mut text = "module Kernel\n".to_owned();
    let mut define = |head: &str, body: &str| {
        let _ = writeln!(text, "  def {head}\n    {body}\n  end");
    };
    for n in 1..=MAX_LISTS {
        let (lists, values) = (each(n, |k| format!("b{k}")), each(n, |k| format!("b{k}.__nth(__position)")));
        define(&format!("__combine_{n}(x, {lists})"), &format!("yield(x, {values})"));
        define(&format!("__zip_{n}(x, {lists})"), &format!("yield([x, {values}])"));
    }
    for n in 2..=MAX_DIMENSIONS {
        // every size but the first, which the computation does not need
        let sizes = each(n - 1, |k| format!("size{}", k + 1));
        // no size is zero, or there would be no position; this form lets range analysis know it
        let known: String = (1..n).map(|k| format!("n{k} = size{k} < 1 ? 1 : size{k}\n")).collect();
        // two divisions by each size, which passes make one
        let indices = |position: &str| {
            let outer = |k: usize| if k + 1 == n { position.to_owned() } else { format!("q{}", k + 1) };
            let quotients: String = (1..n).rev().map(|k| format!("q{k} = {} / n{k}\n", outer(k))).collect();
            let within = each(n, |k| if k == 0 { outer(k) } else { format!("{} % n{k}", outer(k)) });
            (format!("{known}{quotients}"), within)
        };
        let ((known, at), (known_part, part)) = (indices("__position"), indices("x"));
        define(&format!("__cells_{n}(_x, {sizes})"), &format!("{known}yield({at})"));
        define(&format!("__cell_{n}(_x, {sizes})"), &format!("{known}yield([{at}])"));
        define(&format!("__indexed_{n}(_x, at, {sizes})"), &format!("{known}yield(at.call(__position), {at})"));
        // for some rows of a larger array, whose elements keep their numbers
        define(&format!("__cells_part_{n}(x, {sizes})"), &format!("{known_part}yield({part})"));
        let given = format!("{known_part}yield(at.call(__position), {part})");
        define(&format!("__indexed_part_{n}(x, at, {sizes})"), &given);
    }
    define("__indexed_1(_x, at)", "yield(at.call(__position), __position)");
    define("__indexed_part_1(x, at)", "yield(at.call(__position), x)");
    for n in 2..=MAX_LISTS + 1 {
        let (lists, values) = (each(n, |k| format!("at{k}")), each(n, |k| format!("at{k}.call(__position)")));
        define(&format!("__computed_{n}(_x, {lists})"), &format!("yield({values})"));
    }
    for dimensions in 1..=MAX_STENCIL_DIMENSIONS {
        let bounds = bounds(dimensions);
        define(&format!("__inside_{dimensions}?({bounds})"), &inside(dimensions));
        let inside = format!("return fill unless __inside_{dimensions}?({bounds})\n");
        let reaches = each(dimensions, |k| format!("stride{k}, least{k}, greatest{k}"));
        let around = format!("::Ikra::Neighbours.new(list, __position, {dimensions}, {reaches})");
        let head = format!("__neighbours_{dimensions}(_x, list, fill, {reaches}, {bounds})");
        define(&head, &format!("{inside}yield({around})"));
        for n in 1..=MAX_NEIGHBOURS {
            // all of them exist, so no index is compared with the list's size
            let values = each(n, |k| format!("list.__at((__position + o{k}) & {MASK})"));
            let given = format!("(_x, list, fill, {}, {bounds})", each(n, |k| format!("o{k}")));
            define(&format!("__stencil_{n}_{dimensions}{given}"), &format!("{inside}yield({values})"));
            define(&format!("__stencil_list_{n}_{dimensions}{given}"), &format!("{inside}yield([{values}])"));
        }
    }
    text + "end\n"
}

/// A mask for indices that are in range. It lets range analysis know that they are not negative.
const MASK: &str = "0x7fff_ffff_ffff_ffff";

/// The conditions under which all neighbours of an element exist: every size but the first, and for each dimension the
/// least index and the limit of the index.
fn bounds(dimensions: usize) -> String {
    let sizes: String = (1..dimensions).map(|k| format!("size{k}, ")).collect();
    sizes + &each(dimensions, |k| format!("from{k}, below{k}"))
}

fn inside(dimensions: usize) -> String {
    let (mut text, mut rest) = (String::new(), "__position".to_owned());
    for k in (1..dimensions).rev() {
        // no size is zero, or there would be no position; this form lets range analysis know it
        let _ = write!(
            text,
            "n{k} = size{k} < 1 ? 1 : size{k}\nq{k} = {rest} / n{k}\ni{k} = ({rest} - q{k} * n{k}) & {MASK}\n"
        );
        rest = format!("q{k}");
    }
    let each: Vec<String> = (0..dimensions)
        .map(|k| {
            let index = if k == 0 { rest.clone() } else { format!("i{k}") };
            format!("{index} >= from{k} && {index} < below{k}")
        })
        .collect();
    text + &each.join(" && ")
}

fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().join(", ")
}
