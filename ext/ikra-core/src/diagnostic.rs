//! Messages that point into Ruby source.
//!
//! Here: spans, and how a message is printed with its source line and caret. Not here: the messages themselves.

use crate::source::Source;
use std::fmt;
use std::sync::Arc;

/// A byte range in [`Source::text`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |n: usize| u32::try_from(n).expect("a source is smaller than 4 GiB");
        Self { start: narrow(start), end: narrow(end) }
    }
}

/// A message at a position in Ruby source: what is wrong, why, and what to write instead.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    pub source: Arc<Source>,
    pub span: Span,
    /// One sentence: what Ikra cannot do here.
    pub message: String,
    /// Why, if the message does not say it.
    pub reason: Option<String>,
    /// What to write instead.
    pub advice: Option<String>,
    /// The calls that lead to the position, the innermost first.
    pub calls: Vec<Called>,
}

/// A call on the way to a position.
#[derive(Clone, Debug)]
pub struct Called {
    pub source: Arc<Source>,
    pub span: Span,
    /// The name of what is called: `Car#move`.
    pub label: String,
}

impl Diagnostic {
    pub fn new(source: &Arc<Source>, span: Span, message: impl Into<String>) -> Self {
        Self { source: source.clone(), span, message: message.into(), reason: None, advice: None, calls: Vec::new() }
    }
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
    /// The same problem, reported at the call of a method, with this message as the reason.
    pub fn told_at(&self, call: &Called, message: String, advice: String) -> Self {
        let reason = format!("{}:{}: {}", self.source.path, self.line(), self.message);
        Self::new(&call.source, call.span, message).because(reason).advise(advice)
    }
    /// Notes a call that leads to the position. Users do not see calls of `method_missing`, so a problem in it is
    /// reported where the missing method is called.
    pub fn called_from(&mut self, call: Called) {
        let name = call.source.slice(call.span).to_owned();
        let handled = call.label.strip_suffix("method_missing").filter(|_| name != "method_missing");
        if let Some(class) = handled.map(|owner| owner.trim_end_matches(['#', '.'])) {
            let message = format!("{class} has no method {name}, and kernels cannot compile its method_missing");
            *self = self.told_at(&call, message, format!("define {name} with def"));
            return;
        }
        self.calls.push(call);
    }
    /// The position's line, from 1.
    pub fn line(&self) -> u32 {
        self.source.line_of(self.span.start)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.line_column(self.span.start);
        write!(f, "{}:{}:{}: {}", self.source.path, line, column + 1, self.message)?;
        let text = self.source.line_text(self.span.start);
        let shown = text.trim_end();
        let before: String = shown.chars().take(column).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let wide = self.source.slice(self.span).chars().take_while(|c| *c != '\n').count().max(1);
        write!(f, "\n\n    {shown}\n    {before}{}", "^".repeat(wide))?;
        let notes = [("Reason", &self.reason), ("Instead", &self.advice)];
        let notes: Vec<String> =
            notes.iter().filter_map(|(word, n)| Some(format!("{word}: {}", n.as_ref()?))).collect();
        if !notes.is_empty() {
            write!(f, "\n\n{}", notes.join("\n"))?;
        }
        Ok(())
    }
}
