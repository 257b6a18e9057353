//! For each construct, the tree that it becomes.

use super::{parse_block, parse_method, symbol_block};
use crate::source::{Lines, Source};
use crate::syntax::ast::{Kind, Node, Origin, Unit};
use crate::syntax::print;
use proptest::prelude::*;
use std::sync::Arc;

fn block_unit(text: &str) -> Unit {
    parse_block(&Arc::new(Source::whole("t.rb", text, 1)), &["cap", "sum"]).unwrap_or_else(|d| panic!("{d}"))
}

/// The body of a block with one parameter `x` and the captures `cap` and `sum`.
fn body(text: &str) -> String {
    let printed = print::unit(&block_unit(&format!("{{ |x| {text} }}")));
    let inner = printed.strip_prefix("(block (x)").and_then(|p| p.strip_suffix(')'));
    inner.unwrap_or_else(|| panic!("unexpected head: {printed}")).trim().to_owned()
}

fn block(text: &str) -> String {
    print::unit(&block_unit(text))
}

fn method(text: &str) -> String {
    let unit = parse_method(&Arc::new(Source::whole("t.rb", text, 1))).unwrap_or_else(|d| panic!("{d}"));
    print::unit(&unit)
}

fn assert_bodies(table: &[(&str, &str)]) {
    for (ruby, tree) in table {
        assert_eq!(body(ruby), *tree, "for `{ruby}`");
    }
}

#[test]
fn a_block_that_gives_its_parameter_and_no_more_is_known() {
    for text in ["{ |x| x }", "{ _1 }", "{ |x| (x) }", "->(x) { x }", "do |x|\n  x\nend"] {
        assert!(block_unit(text).gives_parameter(), "{text}");
    }
    for text in [
        "{ |x,| x }",
        "{ |(x)| x }",
        "{ |x, y| x }",
        "{ |*x| x }",
        "{ |x = 1| x }",
        "{ |x, y = 1| x }",
        "{ |x| cap }",
        "{ |x| x.itself }",
        "{ |x| x = 1 }",
        "{ |x| x; x }",
        "{ _2 }",
        "{ |x| }",
        "{ }",
    ] {
        assert!(!block_unit(text).gives_parameter(), "{text}");
    }
    assert!(!symbol_block(&Arc::new(Source::whole("t.rb", "&:itself", 1)), "itself").gives_parameter());
}

#[test]
fn a_block_that_adds_its_two_parameters_and_no_more_is_known() {
    for text in ["{ |a, b| a + b }", "{ |a, b| b + a }", "{ _1 + _2 }", "{ |a, b| a.+(b) }", "->(a, b) { a + b }"] {
        assert!(block_unit(text).adds(), "{text}");
    }
    for text in [
        "{ |a, b| a - b }",
        "{ |a, b| a + a }",
        "{ |a, b| a + cap }",
        "{ |a, b| a + b + 0 }",
        "{ |a, b| a&.+(b) }",
        "{ |a, b, c| a + b }",
        "{ |a, b = 1| a + b }",
        "{ |a, *b| a + b }",
        "{ |(a, b), c| a + b }",
        "{ |a| a + cap }",
        "{ |a, b| a.+(b) { } }",
        "{ |a, b| a += b }",
        "{ }",
    ] {
        assert!(!block_unit(text).adds(), "{text}");
    }
    let symbol = |name| symbol_block(&Arc::new(Source::whole("t.rb", "&:+", 1)), name);
    assert!(symbol("+").adds() && !symbol("-").adds());
}

#[test]
fn literals() {
    assert_bodies(&[
        ("nil", "nil"),
        ("true", "true"),
        ("self", "self"),
        ("2i", "(call %__make ::Complex 0 2)"),
        ("3r", "(call %__make ::Rational 3 1)"),
        ("0r", "(call %__make ::Rational 0 1)"),
        ("-1_0.50r", "(call %__make ::Rational -21 2)"),
        ("1_000", "1000"),
        ("+5", "5"),
        ("-5", "-5"),
        ("0xFF", "255"),
        ("-0xff_ff", "-65535"),
        ("0b101", "5"),
        ("0o17", "15"),
        ("017", "15"),
        ("0d19", "19"),
        ("0", "0"),
        ("00", "0"),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854775808"),
        ("0x1_0000_0000_0000_0000", "18446744073709551616"),
        ("-100000000000000000000", "-100000000000000000000"),
        ("1.5", "1.5"),
        ("-1_0.5e-3", "-0.0105"),
        ("1e400", "inf"),
        ("-0.0", "-0.0"),
        ("-2 ** 2", "(call -@ (call ** 2 2))"),
        ("-2.abs", "(call abs -2)"),
        ("2 ** -1", "(call ** 2 -1)"),
        (":sym", ":sym"),
        (":\"quoted sym\"", ":quoted sym"),
        (":+", ":+"),
        (":a?", ":a?"),
        ("%i[a b]", "(array :a :b)"),
        ("\"plain\\n\"", "\"plain\\n\""),
        ("'it''s'", "\"its\""),
        ("?a", "\"a\""),
        ("%w[a b]", "(array \"a\" \"b\")"),
        ("\"a#{x}\"", "(call %__join1 \"a\" (call %__to_text x))"),
        (":\"a#{x}\"", "(unsupported \"a symbol with interpolation\")"),
        ("[1, *x]", "(call @+ (array 1) (call %__splat x))"),
        ("{a: 1, \"b\" => 2, 3 => 4}", "(hash (:a 1) (\"b\" 2) (3 4))"),
        ("1..x", "(.. 1 x)"),
        ("(1...)", "(... 1 _)"),
        ("(..x)", "(.. _ x)"),
        ("__FILE__", "\"t.rb\""),
        ("__LINE__", "1"),
    ]);
}

#[test]
fn text_over_lines() {
    assert_eq!(block("{ |x|\n  'a' \\\n  'b'\n}"), "(block (x) \"ab\")");
    assert_eq!(block("{ |x|\n  <<~T\n    one\n    two\n  T\n}"), "(block (x) \"one\\ntwo\\n\")");
    assert_eq!(block("{ |x|\n\n  __LINE__\n}"), "(block (x) 3)");
}

#[test]
fn a_list_among_arguments_is_counted_when_the_call_runs() {
    let printed = block("{ |x| x.foo(1, *cap) }");
    assert!(printed.contains("(= #2 (call %__splat ^cap))"), "{printed}");
    assert!(printed.contains("(call foo x 1)") && printed.contains("(call foo x 1 (call %__at #2 0))"), "{printed}");
}

#[test]
fn calls() {
    assert_bodies(&[
        ("x.foo", "(call foo x)"),
        ("x.foo(1, 2)", "(call foo x 1 2)"),
        ("foo", "(call foo _)"),
        ("foo 1", "(call foo _ 1)"),
        ("x&.foo", "(call &.foo x)"),
        ("x.(1)", "(call call x 1)"),
        ("x::foo", "(call foo x)"),
        ("x + 1", "(call + x 1)"),
        ("-x", "(call -@ x)"),
        ("+x", "(call +@ x)"),
        ("~x", "(call ~ x)"),
        ("!x", "(not x)"),
        ("not x", "(not x)"),
        ("x.!", "(call ! x)"),
        ("x != 1", "(call != x 1)"),
        ("x <=> 1", "(call <=> x 1)"),
        ("x[1]", "(call [] x 1)"),
        ("x[1, 2]", "(call [] x 1 2)"),
        ("x.foo(1, a: 2, **cap)", "(call foo x 1 (a: 2) (** ^cap))"),
        ("x.foo(\"a\" => 2)", "(call foo x (** (hash (\"a\" 2))))"),
        ("x.foo({a: 2})", "(call foo x (hash (:a 2)))"),
        ("x.foo(&:bar)", "(call foo x (& :bar))"),
        ("x.foo(&cap)", "(call foo x (& ^cap))"),
        ("x.each { |y| y }", "(call each x (block (y) y))"),
        ("x.each do |y| y end", "(call each x (block (y) y))"),
        ("x.foo 1 do |y| y end", "(call foo x 1 (block (y) y))"),
        ("loop { break 1 }", "(call loop _ (block () (break 1)))"),
        ("->(y) { y }", "(lambda (y) y)"),
        ("-> { 1 }", "(lambda () 1)"),
        ("lambda { |y| y }", "(call lambda _ (block (y) y))"),
        ("->(y) { y }.(2)", "(call call (lambda (y) y) 2)"),
        ("super", "(super ..)"),
        ("super()", "(super)"),
        ("super(1) { 2 }", "(super 1 (block () 2))"),
        ("yield 1, 2", "(yield 1 2)"),
        ("defined?(x)", "\"local-variable\""),
        ("defined?(Foo)", "(if (defined? Foo) \"constant\" nil)"),
        ("defined?(x.foo)", "(if (call %__answers? x :foo) \"method\" nil)"),
        ("Foo", "Foo"),
        ("@@c", "@@c"),
        ("Foo::Bar", "Foo::Bar"),
        ("::Foo", "::Foo"),
        ("x::Foo", "x::Foo"),
        ("Foo()", "(call Foo _)"),
        ("@a", "@a"),
        ("cap", "^cap"),
        ("cap()", "(call cap _)"),
        ("x.then { cap }", "(call then x (block () ^cap))"),
    ]);
}

#[test]
fn assignments() {
    assert_bodies(&[
        ("a = 1", "(= a 1)"),
        ("a = b = 1", "(= a (= b 1))"),
        ("a = 1, 2", "(= a (array 1 2))"),
        ("@a = 1", "(= @a 1)"),
        ("x.a = 1", "(= (. x a) 1)"),
        ("x&.a = 1", "(= (&. x a) 1)"),
        ("self.a = 1", "(= (. self a) 1)"),
        ("x[1] = 2", "(= ([] x 1) 2)"),
        ("x[1, 2] = 3", "(= ([] x 1 2) 3)"),
        ("a += 1", "(+= a 1)"),
        ("@a ||= 1", "(||= @a 1)"),
        ("a &&= 1", "(&&= a 1)"),
        ("x.a -= 1", "(-= (. x a) 1)"),
        ("x&.a -= 1", "(-= (&. x a) 1)"),
        ("x[0] **= 2", "(**= ([] x 0) 2)"),
        ("sum += x", "(+= ^sum x)"),
        ("a, b = 1, 2", "(= (targets a b) (array 1 2))"),
        ("a, (b, c), @d = x", "(= (targets a (targets b c) @d) x)"),
        ("*a, b = x", "(seq (= #3 x) (= (targets (*) b) #3) (= a (call %__rest #3 0 1)) #3)"),
        ("a, * = x", "(= (targets a (*)) x)"),
        ("x.a, x[0] = 1, 2", "(= (targets (. x a) ([] x 0)) (array 1 2))"),
        ("a = *x", "(= a (call %__splat x))"),
        ("$g = 1", "(= (unsupported \"an assignment to a global variable\") 1)"),
        ("@@c ||= 1", "(||= (. @@c= c) 1)"),
        ("C = 1", "(= (unsupported \"an assignment to a constant\") 1)"),
    ]);
}

#[test]
fn control() {
    assert_bodies(&[
        ("if x then 1 else 2 end", "(if x 1 2)"),
        ("if x then 1 elsif cap then 2 end", "(if x 1 (if ^cap 2 nil))"),
        ("1 if x", "(if x 1 nil)"),
        ("1 unless x", "(if x nil 1)"),
        ("unless x then 1 else 2 end", "(if x 2 1)"),
        ("x ? 1 : 2", "(if x 1 2)"),
        ("x && 1 || 2", "(or (and x 1) 2)"),
        ("x and not 1", "(and x (not 1))"),
        ("case x when 1, *[2] then 3 else 5 end", "(case x (when (1 2) 3) (else 5))"),
        ("case when x then 1 end", "(case _ (when (x) 1) (else nil))"),
        ("while x do 1 end", "(while x 1)"),
        ("1 while x", "(while x 1)"),
        ("until x do end", "(while (not x) nil)"),
        ("begin; 1; end while x", "(do-while x 1)"),
        ("begin; 1; end until x", "(do-while (not x) 1)"),
        ("for i in 1..2 do i end", "(for i (.. 1 2) i)"),
        ("for a, b in x do a end", "(for (targets a b) x a)"),
        ("next", "(next)"),
        ("next 1, 2", "(next (array 1 2))"),
        ("return *x", "(return (call %__splat x))"),
        ("begin; 1; 2; end", "(seq 1 2)"),
        ("(1; 2)", "(seq 1 2)"),
        ("()", "nil"),
        (
            "begin; 1; rescue A, B => e; 2; rescue; 3; else 4; ensure 5; end",
            "(begin 1 (rescue (A B) e 2) (rescue () 3) (else 4) (ensure 5))",
        ),
        ("1 rescue 2", "(begin 1 (rescue () 2))"),
        ("begin; 1; ensure; 2; end", "(begin 1 (ensure 2))"),
    ]);
}

#[test]
fn refusals() {
    assert_bodies(&[
        ("$g", "(unsupported \"a global variable\")"),
        ("$'", "(unsupported \"this variable of the last match\")"),
        ("/a#{x}/", "(unsupported \"a regular expression with interpolation\")"),
        ("/(?<n>a)/ =~ x", "(unsupported \"a match that assigns variables\")"),
        ("def a; end", "(unsupported \"a definition of a method or class\")"),
        ("alias a b", "(unsupported \"`alias` and `undef`\")"),
        ("`ls`", "(unsupported \"a shell command\")"),
        ("1 if x..cap", "(if (unsupported \"a flip-flop (a range as a condition) in a section's block\") 1 nil)"),
        ("redo", "(unsupported \"`redo`\")"),
        ("2ri", "(unsupported \"a Complex of Rationals\")"),
        ("99999999999999999999r", "(unsupported \"this number\")"),
        ("END { 1 }", "(unsupported \"`BEGIN` and `END`\")"),
        ("__method__", "(unsupported \"`__method__` in a block\")"),
    ]);
}

#[test]
fn parameters() {
    let table = [
        ("{ }", "(block () nil)"),
        ("{ || 1 }", "(block () 1)"),
        ("do |x| x end", "(block (x) x)"),
        ("{ |x,| x }", "(block (x *) x)"),
        ("{ |(x, *y), (z, (w))| x }", "(block ((x *y) (z (w))) x)"),
        ("{ |(x, y)| x }", "(block ((x y)) x)"),
        ("{ |(x)| x }", "(block ((x)) x)"),
        ("{ |x, y = x, *z, w, k:, l: 1, **m, &n| 1 }", "(block (x (= y x) *z w k: (l: 1) **m &n) 1)"),
        ("{ |*| 1 }", "(block (*) 1)"),
        ("{ |x, &b| x }", "(block (x &b) x)"),
        ("{ |_, _| _ }", "(block (_#0 _#1) _#0)"),
        ("{ _1 + 1 }", "(block (_1) (call + _1 1))"),
        ("{ _2 }", "(block (_1 _2) _2)"),
        ("{ it + 1 }", "(block (it) (call + it 1))"),
        ("{ || it }", "(block () (call it _))"),
        ("{ |x| it }", "(block (x) (call it _))"),
        ("{ it() }", "(block () (call it _))"),
        ("{ it = 1; it }", "(block () (seq (= it 1) it))"),
        ("{ it.map { it } }", "(block (it#0) (call map it#0 (block (it#1) it#1)))"),
        ("{ |x| x.map { _1 } }", "(block (x) (call map x (block (_1) _1)))"),
        ("->(x, y = 1) { return x }", "(lambda (x (= y 1)) (return x))"),
        ("-> x do x end", "(lambda (x) x)"),
        ("-> { it }", "(lambda (it) it)"),
    ];
    for (ruby, tree) in table {
        assert_eq!(block(ruby), tree, "for `{ruby}`");
    }
}

#[test]
fn methods() {
    let table = [
        ("def m; end", "(method m () nil)"),
        ("def m = 1", "(method m () 1)"),
        ("def self.m(a, b = a, *c, d, e:, f: 2, **g, &h)\n a\nend", "(method m (a (= b a) *c d e: (f: 2) **g &h) a)"),
        ("def a=(v)\n @a = v\nend", "(method a= (v) (= @a v))"),
        ("def +(o) = o", "(method + (o) o)"),
        ("def m; 1; rescue; 2; ensure; 3; end", "(method m () (begin 1 (rescue () 2) (ensure 3)))"),
        ("def m(...) = f(...)", "(method m (* **) (unsupported \"argument forwarding (`...`, `*`, `**`, `&`)\"))"),
        ("def m(&) = f(&)", "(method m (&&) (call f _ (& &)))"),
        ("def m = __method__", "(method m () :m)"),
        ("def m = it", "(method m () (call it _))"),
        ("def m(a)\n yield a\nend", "(method m (a) (yield a))"),
    ];
    for (ruby, tree) in table {
        assert_eq!(method(ruby), tree, "for `{ruby}`");
    }
}

#[test]
fn scopes_of_locals() {
    let table = [
        // An inner block's variable is new at each call, and is not the outer variable that comes later.
        (
            "{ |x| x.each { y = 1 }; y = 2; y }",
            "(block (x) (seq (call each x (block () (locals y#1) (= y#1 1))) (= y#2 2) y#2))",
        ),
        ("{ |x| y = 0; x.each { y = 1 } }", "(block (x) (seq (= y 0) (call each x (block () (= y 1)))))"),
        ("{ |x| x.each { |x| x } }", "(block (x#0) (call each x#0 (block (x#1) x#1)))"),
        ("{ |x; y| y = cap }", "(block (x) (= y ^cap))"),
        ("{ |x| x.each { |z; cap| cap = z } }", "(block (x) (call each x (block (z) (locals cap) (= cap z))))"),
        ("{ |x| for i in x do j = i end; j }", "(block (x) (seq (for i x (= j i)) j))"),
        ("{ |cap| cap }", "(block (cap) cap)"),
        ("{ |x| a = a }", "(block (x) (= a a))"),
        (
            "{ |x| x.each { a = 1 } while a = nil }",
            "(block (x) (while (= a#2 nil) (call each x (block () (locals a#1) (= a#1 1)))))",
        ),
    ];
    for (ruby, tree) in table {
        assert_eq!(block(ruby), tree, "for `{ruby}`");
    }
    let unit = block_unit("{ |x; l| a = cap; x.each { |y| b = y } }");
    let origins: Vec<_> = unit.locals.iter().map(|l| (&*l.name, l.origin)).collect();
    assert_eq!(
        origins,
        [
            ("x", Origin::Param),
            ("l", Origin::Own),
            ("a", Origin::Own),
            ("cap", Origin::Captured),
            ("y", Origin::Inner),
            ("b", Origin::Inner),
        ]
    );
}

#[test]
fn interpolation_begins_as_ruby_begins_it() {
    let printed = |ruby: &str, prism| {
        let text = format!("{{ |x| {ruby} }}");
        let source = Source { prism, ..Source::whole("t.rb", &text, 1) };
        let unit = parse_block(&Arc::new(source), &["cap"]).unwrap_or_else(|d| panic!("{d}"));
        print::unit(&unit).replace("(call %__to_text x)", "X").replace("(call %__to_text ^cap)", "C")
    };
    // the text, what Prism makes of it, what the parser before makes of it
    let cases = [
        (r##""#{x}""##, r#"(call %__join1 "" X)"#, r#"(call %__join1 "" X)"#),
        (r##""a#{x}""##, r#"(call %__join1 "a" X)"#, r#"(call %__join1 "a" X)"#),
        (r##""#{x}#{cap}""##, "(call %__join1 X C)", r#"(call %__join2 "" X C)"#),
        (r##""#{x}a""##, r#"(call %__join1 X "a")"#, r#"(call %__join1 X "a")"#),
        (
            r##""" "#{x}a""##,
            r#"(call %__join1 "" (call %__to_text (call %__join1 X "a")))"#,
            r#"(call %__join1 X "a")"#,
        ),
        (
            r##""#{x}" "a""##,
            r#"(call %__join1 (call %__to_text (call %__join1 "" X)) "a")"#,
            r#"(call %__join1 X "a")"#,
        ),
        (r##""#{x}" """##, r#"(call %__to_text (call %__join1 "" X))"#, r#"(call %__join1 "" X)"#),
    ];
    for (ruby, prism, before) in cases {
        assert_eq!(printed(ruby, true), format!("(block (x) {prism})"), "{ruby} by Prism");
        assert_eq!(printed(ruby, false), format!("(block (x) {before})"), "{ruby} by the parser before");
    }
}

/// A source with lines around the slice.
fn within(line: &str, slice: &str) -> Arc<Source> {
    let start = line.find(slice).expect("the slice is in the line");
    Arc::new(Source {
        path: "t.rb".into(),
        text: line.into(),
        first_line: 7,
        slice: start..start + slice.len(),
        heredocs: 0..0,
        own: false,
        foreign_strings: false,
        prism: false,
        frozen_strings: false,
        refined: false,
        lines: Lines::default(),
    })
}

#[test]
fn spans_are_offsets_in_the_text() {
    let source = within("ä = xs.map { |x| x + 1 }; xs.pmap { |x| x.foo(ä) }\n", "{ |x| x.foo(ä) }");
    let unit = parse_block(&source, &["ä", "xs"]).expect("it parses");
    assert_eq!(source.slice(unit.body.span), "x.foo(ä)");
    let Kind::Call(call) = &unit.body.kind else { panic!("a call") };
    assert_eq!(source.slice(call.name_span), "foo");
    assert_eq!(source.line_column(call.name_span.start), (7, 42));
    assert_eq!(print::unit(&unit), "(block (x) (call foo x ^ä))");
}

#[test]
fn a_lambda_s_slice_is_extended_to_its_arrow() {
    for (line, slice) in [("f = -> (x) { x }", "(x) { x }"), ("f = ->x do x end", "x do x end")] {
        let unit = parse_block(&within(line, slice), &[]).expect("it parses");
        assert_eq!(print::unit(&unit), "(lambda (x) x)");
    }
}

#[test]
fn syntax_errors_have_positions() {
    let source = within("xs.pmap { |x| x + }\n", "{ |x| x + }");
    let error = parse_block(&source, &[]).expect_err("it does not parse");
    assert!(error.message.starts_with("syntax error"), "{error}");
    assert_eq!(error.line(), 7);
    for slice in ["{ 1 } + 2", "{ 1 }; 2", "1", "", "{", "}"] {
        assert!(parse_block(&Arc::new(Source::whole("t.rb", slice, 1)), &[]).is_err(), "for `{slice}`");
        assert!(parse_method(&Arc::new(Source::whole("t.rb", slice, 1))).is_err(), "for `{slice}`");
    }
    let outside = Source { slice: 3..99, ..Source::whole("t.rb", "{ }", 1) };
    assert!(parse_block(&Arc::new(outside), &[]).is_err());
    let within_a_character = Source { slice: 1..3, ..Source::whole("t.rb", "ä {}", 1) };
    assert!(parse_block(&Arc::new(within_a_character), &[]).is_err());
}

#[test]
fn symbols_as_blocks() {
    let source = within("xs.pmap(&:foo)\n", "&:foo");
    let unit = symbol_block(&source, "foo");
    assert_eq!(print::unit(&unit), "(block (x) (call foo x))");
    assert_eq!(source.slice(unit.body.span), "&:foo");
}

#[test]
fn deep_nesting_is_refused_not_fatal() {
    let test = || {
        let lists = format!("{{ {}1{} }}", "[".repeat(3000), "]".repeat(3000));
        for deep in [lists, format!("{{ 1{} }}", "+1".repeat(30_000))] {
            let unit = parse_block(&Arc::new(Source::whole("t.rb", &deep, 1)), &[]).expect("it parses");
            assert!(print::unit(&unit).contains("nested this deeply"));
        }
    };
    // the bridge runs the compiler where there is so much at least; a test's own thread has 2 MiB
    let thread = std::thread::Builder::new().stack_size(6 << 20).spawn(test).expect("a thread");
    thread.join().expect("it ends well");
}

/// Checks every node of a unit, which the printer shows: ids are unique and spans lie in the slice.
fn check(unit: &Unit) {
    let mut seen = vec![false; unit.nodes];
    visit(&unit.body, &mut |node| {
        assert!(!std::mem::replace(&mut seen[node.id.index()], true), "{:?} twice", node.id);
        assert!(node.span.start <= node.span.end);
        assert!(unit.source.slice.start <= node.span.start as usize && node.span.end as usize <= unit.source.slice.end);
    });
    print::unit(unit);
}

fn visit(node: &Node, f: &mut impl FnMut(&Node)) {
    f(node);
    match &node.kind {
        Kind::Seq(nodes) | Kind::Array(nodes) => nodes.iter().for_each(|n| visit(n, f)),
        Kind::If { cond, then, otherwise } => [cond, then, otherwise].into_iter().for_each(|n| visit(n, f)),
        Kind::Assign { value, .. } | Kind::OpAssign { value, .. } | Kind::Not(value) => visit(value, f),
        Kind::Call(call) => {
            call.receiver.iter().for_each(|n| visit(n, f));
            call.block.iter().for_each(|b| visit(&b.body, f));
        }
        _ => {}
    }
}

/// Pieces of Ruby, which a test concatenates at random.
const PIECES: &[&str] = &[
    "{", "}", "do", "end", "|", "x", "y", "|x|", "(", ")", "[", "]", "1", "0x", "1.5", "-", "+", "*", "**", "&", "&.",
    ".", "..", "...", "=", "==", "+=", "||=", "&&", "!", "?", ":", "::", ";", "\n", " ", ",", "if", "unless", "while",
    "case", "when", "in", "then", "else", "def", "self", "class", "begin", "rescue", "ensure", "=>", "->", "\"", "'",
    "#{", "`", "/", "%w[", "%", "<<~A", "A", "@a", "@@b", "$c", "_1", "it", "yield", "super", "return", "break", "for",
    "not", "alias", "?a", ":s", "\\", "#", "é", "__END__", "=begin", "nil", "until", "foo", "foo(", "a:", "**nil", "<",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        for text in [text.clone(), format!("{{ {text} }}"), format!("def m\n{text}\nend")] {
            let source = Arc::new(Source::whole("t.rb", &text, 1));
            if let Ok(unit) = parse_block(&source, &["a"]) { check(&unit); }
            if let Ok(unit) = parse_method(&source) { check(&unit); }
        }
    }

    #[test]
    fn no_string_of_tokens_makes_it_panic(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24), gap in "[ ]?") {
        let text = pieces.join(&gap);
        for text in [text.clone(), format!("{{ |x| {text} }}"), format!("def m(x)\n{text}\nend")] {
            let source = Arc::new(Source::whole("t.rb", &text, 1));
            if let Ok(unit) = parse_block(&source, &["a"]) { check(&unit); }
            if let Ok(unit) = parse_method(&source) { check(&unit); }
        }
    }
}
