//! Methods around a section's block that pass on several values, one for each number of them.
//!
//! Here: their text. Not here: the others (`operations.rb`), which say what such methods are.

use std::fmt::Write;

/// How many lists `pcombine` and `pzip` take beside the receiver.
pub const MOST_LISTS: usize = 8;
/// How many dimensions `Array.pnew` knows.
pub const MOST_DIMENSIONS: usize = 6;
/// How many neighbours `pstencil` gives by themselves.
pub const MOST_NEIGHBOURS: usize = 32;

/// The text of all of them.
pub fn several() -> String {
    let mut text = "module Kernel\n".to_owned();
    let mut define = |head: &str, body: &str| {
        let _ = writeln!(text, "  def {head}\n    {body}\n  end");
    };
    for n in 1..=MOST_LISTS {
        let (lists, values) = (each(n, |k| format!("b{k}")), each(n, |k| format!("b{k}.__nth(__position)")));
        define(&format!("__combine_{n}(x, {lists})"), &format!("yield(x, {values})"));
        define(&format!("__zip_{n}(x, {lists})"), &format!("yield([x, {values}])"));
    }
    for n in 2..=MOST_DIMENSIONS {
        // every size but the first, which nobody asks for
        let sizes = each(n - 1, |k| format!("size{}", k + 1));
        // none of them is zero, or there would be no position: said so that ranges know it
        let known: String = (1..n).map(|k| format!("n{k} = size{k} < 1 ? 1 : size{k}\n")).collect();
        let at = each(n, |k| {
            let below: String = (k + 1..n).map(|k| format!(" / n{k}")).collect();
            let within = if k == 0 { String::new() } else { format!(" % n{k}") };
            format!("__position{below}{within}")
        });
        define(&format!("__cells_{n}(_x, {sizes})"), &format!("{known}yield({at})"));
        define(&format!("__indexed_{n}(_x, at, {sizes})"), &format!("{known}yield(at.call(__position), {at})"));
    }
    define("__indexed_1(_x, at)", "yield(at.call(__position), __position)");
    for n in 2..=MOST_LISTS + 1 {
        let (lists, values) = (each(n, |k| format!("at{k}")), each(n, |k| format!("at{k}.call(__position)")));
        define(&format!("__computed_{n}(_x, {lists})"), &format!("yield({values})"));
    }
    for n in 1..=MOST_NEIGHBOURS {
        let values = each(n, |k| format!("list.__nth(__position + offsets[{k}])"));
        let head = |name: &str| format!("__{name}_{n}(_x, list, fill, offsets, sizes, least, greatest)");
        let inside = "return fill unless __inside?(sizes, least, greatest)\n";
        define(&head("stencil"), &format!("{inside}yield({values})"));
        define(&head("stencil_list"), &format!("{inside}yield([{values}])"));
    }
    text + "end\n"
}

fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().join(", ")
}
