//! Parameters of blocks and methods.

use super::{Lower, refuse};
use crate::syntax::ast::{Keyword, LocalId, Node, Origin, Params, Pattern, Rest};
use crate::syntax::visit;
use lib_ruby_parser::Node as Ruby;

impl Lower<'_> {
    /// Parameters. If no call could bind them, also an error in place of the body.
    ///
    /// `spreads`: a block proper, where `|a, |` takes the first element of an array; not a lambda or method.
    pub(super) fn params(&mut self, args: Option<&Ruby>, spreads: bool) -> (Params, Option<Node>) {
        let mut params = Params::default();
        let mut refused = None;
        let Some(Ruby::Args(args)) = args else { return (params, refused) };
        for arg in &args.args {
            match arg {
                Ruby::Arg(a) => {
                    let pattern = Pattern::Local(self.scopes.param(&a.name));
                    positional(&mut params).push(pattern);
                }
                // The only parameter of a block, alone or in parentheses.
                Ruby::Procarg0(p) if p.begin_l.is_none() => {
                    for arg in &p.args {
                        let pattern = self.pattern(arg);
                        params.required.push(pattern);
                    }
                }
                Ruby::Procarg0(p) => {
                    let pattern = self.pattern_list(&p.args);
                    params.required.push(pattern);
                }
                Ruby::Mlhs(_) => {
                    let pattern = self.pattern(arg);
                    positional(&mut params).push(pattern);
                }
                Ruby::Optarg(a) => {
                    // In `a = expr` the parameter already exists in `expr`, as nil.
                    let local = self.scopes.param(&a.name);
                    let default = self.node(&a.default);
                    params.optional.push((local, default));
                }
                Ruby::Restarg(a) => params.rest = Some(self.rest(a.name.as_deref(), "*")),
                Ruby::Kwarg(a) => {
                    let local = self.scopes.param(&a.name);
                    params.keywords.push(Keyword { name: a.name.as_str().into(), local, default: None });
                }
                Ruby::Kwoptarg(a) => {
                    let local = self.scopes.param(&a.name);
                    let default = Some(self.node(&a.default));
                    params.keywords.push(Keyword { name: a.name.as_str().into(), local, default });
                }
                Ruby::Kwrestarg(a) => params.keyword_rest = Some(self.rest(a.name.as_deref(), "**")),
                // `**nil`: no keywords. A list of parameters without keywords means the same to us.
                Ruby::Kwnilarg(_) => {}
                Ruby::Blockarg(a) => {
                    params.block = Some(self.scopes.param(a.name.as_deref().unwrap_or(ANONYMOUS_BLOCK)));
                }
                Ruby::Shadowarg(a) => {
                    self.scopes.own(&a.name);
                }
                // the body is refused, whatever the arguments are
                other => {
                    params.rest = Some(Rest(None));
                    params.keyword_rest = Some(Rest(None));
                    let span = self.span_of(other);
                    refused.get_or_insert_with(|| self.make(span, refuse::FORWARDING));
                }
            }
        }
        let plain = args.args.iter().filter(|a| !matches!(a, Ruby::Shadowarg(_)));
        if spreads && plain.clone().count() == 1 && plain.clone().all(|a| matches!(a, Ruby::Arg(_))) {
            // `|a, |`: without the comma the parser gives a Procarg0.
            params.rest = Some(Rest(None));
        }
        let apart = params.locals_apart();
        if !apart.is_empty() && visit::default_reads_any(&params, &apart) {
            let span = self.span(&args.expression_l);
            refused.get_or_insert_with(|| self.make(span, refuse::DEFAULT_OF_APART));
        }
        (params, refused)
    }

    /// `_1` to `_count`.
    pub(super) fn numbered_params(&mut self, count: u8) -> Params {
        let required = (1..=count).map(|n| Pattern::Local(self.scopes.param(&format!("_{n}")))).collect();
        Params { required, ..Params::default() }
    }

    fn rest(&mut self, name: Option<&str>, anonymous: &str) -> Rest {
        Rest(name.filter(|n| *n != anonymous).map(|n| self.scopes.param(n)))
    }

    fn pattern(&mut self, arg: &Ruby) -> Pattern {
        match arg {
            Ruby::Arg(a) => Pattern::Local(self.scopes.param(&a.name)),
            Ruby::Mlhs(m) => self.pattern_list(&m.items),
            Ruby::Procarg0(p) => self.pattern_list(&p.args),
            // The grammar allows nothing else here.
            _ => Pattern::Local(self.unnamed()),
        }
    }

    fn pattern_list(&mut self, items: &[Ruby]) -> Pattern {
        let (mut before, mut rest, mut after) = (Vec::new(), None, Vec::new());
        for item in items {
            match item {
                Ruby::Restarg(a) => rest = Some(self.rest(a.name.as_deref(), "*")),
                Ruby::Splat(s) => {
                    let name = s.value.as_deref().and_then(|v| match v {
                        Ruby::Arg(a) => Some(a.name.as_str()),
                        _ => None,
                    });
                    rest = Some(self.rest(name, "*"));
                }
                item if rest.is_some() => after.push(self.pattern(item)),
                item => before.push(self.pattern(item)),
            }
        }
        Pattern::List { before, rest, after }
    }

    fn unnamed(&mut self) -> LocalId {
        self.scopes.declare("", Origin::Temp)
    }
}

/// The local that holds the block of `def m(&)`.
pub(super) const ANONYMOUS_BLOCK: &str = "&";

/// The list to which the next required parameter belongs.
fn positional(params: &mut Params) -> &mut Vec<Pattern> {
    if params.optional.is_empty() && params.rest.is_none() { &mut params.required } else { &mut params.post }
}
