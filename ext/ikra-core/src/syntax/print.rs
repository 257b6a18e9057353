//! The tree as an s-expression, for tests and for people.
//!
//! Here: [`unit()`]. A local is its name, with `#id` where the unit has several of that name and `^` before a capture.

use super::ast::{
    Arg, AssignOp, Block, Call, ConstBase, ConstPath, Kind, LocalId, Node, Origin, Params, Pattern, Rescue, Rest,
    Target, Unit,
};

/// Lines longer than this are broken.
const WIDTH: usize = 100;

/// A whole unit, with its parameters.
pub fn unit(unit: &Unit) -> String {
    let p = Printer { unit };
    let head = match (&unit.name, unit.lambda) {
        (Some(name), _) => format!("method {name}"),
        (None, true) => "lambda".to_owned(),
        (None, false) => "block".to_owned(),
    };
    let tree = list([atom(head), p.params(&unit.params), p.node(&unit.body)]);
    let mut out = String::new();
    tree.write(&mut out, 0);
    out
}

enum Tree {
    Atom(String),
    List(Vec<Tree>),
}

fn atom(text: impl Into<String>) -> Tree {
    Tree::Atom(text.into())
}

fn list(items: impl IntoIterator<Item = Tree>) -> Tree {
    Tree::List(items.into_iter().collect())
}

fn form(head: &str, items: impl IntoIterator<Item = Tree>) -> Tree {
    Tree::List(std::iter::once(atom(head)).chain(items).collect())
}

impl Tree {
    fn flat(&self, out: &mut String) {
        match self {
            Tree::Atom(text) => out.push_str(text),
            Tree::List(items) => {
                out.push('(');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(' ');
                    }
                    item.flat(out);
                }
                out.push(')');
            }
        }
    }

    fn write(&self, out: &mut String, indent: usize) {
        let mut flat = String::new();
        self.flat(&mut flat);
        let Tree::List(items) = self else {
            out.push_str(&flat);
            return;
        };
        if indent + flat.chars().count() <= WIDTH {
            out.push_str(&flat);
            return;
        }
        out.push('(');
        // Leading atoms stay on the first line.
        let leading = items.iter().take_while(|i| matches!(i, Tree::Atom(_))).count();
        for (i, item) in items.iter().enumerate() {
            if i >= leading.max(1) {
                out.push('\n');
                out.push_str(&" ".repeat(indent + 2));
                item.write(out, indent + 2);
            } else {
                if i > 0 {
                    out.push(' ');
                }
                item.write(out, indent + 2);
            }
        }
        out.push(')');
    }
}

struct Printer<'a> {
    unit: &'a Unit,
}

impl Printer<'_> {
    fn name(&self, id: LocalId) -> String {
        let Some(local) = self.unit.locals.get(id.index()) else { return format!("{id}?") };
        let capture = if local.origin == Origin::Captured { "^" } else { "" };
        let namesakes = self.unit.locals.iter().filter(|l| l.name == local.name).count();
        if namesakes > 1 || local.name.is_empty() {
            format!("{capture}{}#{}", local.name, id.0)
        } else {
            format!("{capture}{}", local.name)
        }
    }

    fn local(&self, id: LocalId) -> Tree {
        atom(self.name(id))
    }

    fn params(&self, params: &Params) -> Tree {
        let mut items: Vec<Tree> = params.required.iter().map(|p| self.pattern(p)).collect();
        for (local, default) in &params.optional {
            items.push(form("=", [self.local(*local), self.node(default)]));
        }
        if let Some(rest) = params.rest {
            items.push(self.rest("*", rest));
        }
        items.extend(params.post.iter().map(|p| self.pattern(p)));
        for keyword in &params.keywords {
            let label = atom(format!("{}:", self.name(keyword.local)));
            items.push(match &keyword.default {
                Some(default) => list([label, self.node(default)]),
                None => label,
            });
        }
        if let Some(rest) = params.keyword_rest {
            items.push(self.rest("**", rest));
        }
        if let Some(block) = params.block {
            items.push(atom(format!("&{}", self.name(block))));
        }
        list(items)
    }

    fn pattern(&self, pattern: &Pattern) -> Tree {
        match pattern {
            Pattern::Local(id) => self.local(*id),
            Pattern::List { before, rest, after } => {
                let mut items: Vec<Tree> = before.iter().map(|p| self.pattern(p)).collect();
                items.extend(rest.map(|r| self.rest("*", r)));
                items.extend(after.iter().map(|p| self.pattern(p)));
                list(items)
            }
        }
    }

    fn rest(&self, stars: &str, rest: Rest) -> Tree {
        atom(format!("{stars}{}", rest.0.map_or_else(String::new, |id| self.name(id))))
    }

    fn nodes<'b>(&'b self, nodes: &'b [Node]) -> impl Iterator<Item = Tree> + 'b {
        nodes.iter().map(|n| self.node(n))
    }

    fn jump(&self, head: &str, value: Option<&Node>) -> Tree {
        form(head, value.map(|v| self.node(v)))
    }

    fn node(&self, node: &Node) -> Tree {
        match &node.kind {
            Kind::Nil => atom("nil"),
            Kind::True => atom("true"),
            Kind::False => atom("false"),
            Kind::SelfRef => atom("self"),
            Kind::Int(i) => atom(i.to_string()),
            Kind::BigInt(digits) => atom(digits.as_str()),
            Kind::Float(f) => atom(format!("{f:?}")),
            Kind::Sym(name) => atom(format!(":{name}")),
            Kind::Regexp(pattern) => atom(pattern.to_string()),
            Kind::Str(bytes) => atom(format!("\"{}\"", bytes.escape_ascii())),
            Kind::DStr(text) => form("dstr", text.pieces().into_iter().map(|piece| self.node(piece))),
            Kind::Array(items) => form("array", self.nodes(items)),
            Kind::Hash(pairs) => form("hash", pairs.iter().map(|(k, v)| list([self.node(k), self.node(v)]))),
            Kind::Range { from, to, exclusive } => {
                let end = |n: &Option<Box<Node>>| n.as_ref().map_or_else(|| atom("_"), |n| self.node(n));
                form(if *exclusive { "..." } else { ".." }, [end(from), end(to)])
            }
            Kind::Splat(value) => form("splat", [self.node(value)]),
            Kind::Local(id) => self.local(*id),
            Kind::Ivar(name) => atom(&**name),
            Kind::Const(path) => self.constant(path),
            Kind::Assign { target, value } => form("=", [self.target(target), self.node(value)]),
            Kind::OpAssign { target, op, value } => {
                let op = match op {
                    AssignOp::Method(name) => format!("{name}="),
                    AssignOp::Or => "||=".to_owned(),
                    AssignOp::And => "&&=".to_owned(),
                };
                form(&op, [self.target(target), self.node(value)])
            }
            Kind::MultiAssign { before, rest, after, value } => {
                form("=", [self.target_list(before, rest.as_ref(), after), self.node(value)])
            }
            Kind::Call(call) => self.call(call),
            Kind::Super { args, block } => {
                let mut items = Vec::new();
                match args {
                    Some(args) => items.extend(args.iter().map(|a| self.arg(a))),
                    None => items.push(atom("..")),
                }
                items.extend(block.as_ref().map(|b| self.block("block", b)));
                form("super", items)
            }
            Kind::Yield(args) => form("yield", args.iter().map(|a| self.arg(a))),
            Kind::Spread { size, calls, .. } => {
                form("spread", std::iter::once(self.node(size)).chain(self.nodes(calls)).collect::<Vec<_>>())
            }
            Kind::Lambda(block) => self.block("lambda", block),
            Kind::And(a, b) => form("and", [self.node(a), self.node(b)]),
            Kind::Or(a, b) => form("or", [self.node(a), self.node(b)]),
            Kind::Not(a) => form("not", [self.node(a)]),
            Kind::If { cond, then, otherwise } => form("if", [self.node(cond), self.node(then), self.node(otherwise)]),
            Kind::Case { subject, whens, otherwise } => {
                let mut items = vec![subject.as_ref().map_or_else(|| atom("_"), |s| self.node(s))];
                for when in whens {
                    items.push(form("when", [list(self.nodes(&when.tests)), self.node(&when.body)]));
                }
                items.push(form("else", [self.node(otherwise)]));
                form("case", items)
            }
            Kind::While { cond, body, body_first } => {
                form(if *body_first { "do-while" } else { "while" }, [self.node(cond), self.node(body)])
            }
            Kind::For { target, over, body } => form("for", [self.target(target), self.node(over), self.node(body)]),
            Kind::Break(value) => self.jump("break", value.as_deref()),
            Kind::Next(value) => self.jump("next", value.as_deref()),
            Kind::Return(value) => self.jump("return", value.as_deref()),
            Kind::Retry => form("retry", []),
            Kind::Found => form("found", []),
            Kind::Seq(nodes) => form("seq", self.nodes(nodes)),
            Kind::Begin { body, rescues, otherwise, ensure } => {
                let mut items = vec![self.node(body)];
                items.extend(rescues.iter().map(|r| self.rescue(r)));
                items.extend(otherwise.as_ref().map(|n| form("else", [self.node(n)])));
                items.extend(ensure.as_ref().map(|n| form("ensure", [self.node(n)])));
                form("begin", items)
            }
            Kind::Defined(value) => form("defined?", [self.node(value)]),
            Kind::Unsupported { what, .. } => form("unsupported", [atom(format!("\"{what}\""))]),
        }
    }

    fn rescue(&self, rescue: &Rescue) -> Tree {
        let mut items = vec![list(self.nodes(&rescue.classes))];
        items.extend(rescue.binding.as_ref().map(|t| self.target(t)));
        items.push(self.node(&rescue.body));
        form("rescue", items)
    }

    fn constant(&self, path: &ConstPath) -> Tree {
        match &path.base {
            ConstBase::Lexical => atom(&*path.name),
            ConstBase::Top => atom(format!("::{}", path.name)),
            ConstBase::Of(scope) => match self.node(scope) {
                Tree::Atom(scope) => atom(format!("{scope}::{}", path.name)),
                scope => form("::", [scope, atom(&*path.name)]),
            },
        }
    }

    fn call(&self, call: &Call) -> Tree {
        let dots = if call.safe { "&." } else { "" };
        let mut items = vec![atom(format!("{dots}{}", call.name))];
        items.push(call.receiver.as_ref().map_or_else(|| atom("_"), |r| self.node(r)));
        items.extend(call.args.iter().map(|a| self.arg(a)));
        items.extend(call.block_arg.as_ref().map(|b| form("&", [self.node(b)])));
        items.extend(call.block.as_ref().map(|b| self.block("block", b)));
        form("call", items)
    }

    fn arg(&self, arg: &Arg) -> Tree {
        match arg {
            Arg::Positional(node) => self.node(node),
            Arg::Keyword(name, node) => list([atom(format!("{name}:")), self.node(node)]),
            Arg::KeywordSplat(node) => form("**", [self.node(node)]),
        }
    }

    fn block(&self, head: &str, block: &Block) -> Tree {
        let mut items = vec![self.params(&block.params)];
        if !block.locals.is_empty() {
            items.push(form("locals", block.locals.iter().map(|id| self.local(*id))));
        }
        items.push(self.node(&block.body));
        form(head, items)
    }

    fn target(&self, target: &Target) -> Tree {
        match target {
            Target::Local(id, _) => self.local(*id),
            Target::Ivar(name, _) => atom(&**name),
            Target::Attr { receiver, name, safe, .. } => {
                form(if *safe { "&." } else { "." }, [self.node(receiver), atom(&**name)])
            }
            Target::Index { receiver, args, .. } => {
                form("[]", std::iter::once(self.node(receiver)).chain(self.nodes(args)))
            }
            Target::List { before, rest, after } => self.target_list(before, rest.as_ref(), after),
            Target::Unsupported { what, .. } => form("unsupported", [atom(format!("\"{what}\""))]),
        }
    }

    fn target_list(&self, before: &[Target], rest: Option<&Option<Box<Target>>>, after: &[Target]) -> Tree {
        let mut items: Vec<Tree> = before.iter().map(|t| self.target(t)).collect();
        if let Some(rest) = rest {
            items.push(form("*", rest.as_ref().map(|t| self.target(t))));
        }
        items.extend(after.iter().map(|t| self.target(t)));
        form("targets", items)
    }
}
