//! The places of a source that rules examine: expressions and statements, with the failing line first.

use super::proposal::Edit;
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_stmt};
use ruff_python_ast::{Expr, ModModule, Stmt};
use ruff_text_size::{Ranged, TextRange};

/// Expressions and statements of a source that touch a line, or all.
pub(super) struct Sites<'a> {
    pub(super) source: &'a str,
    pub(super) module: &'a ModModule,
    pub(super) expressions: Vec<&'a Expr>,
    pub(super) statements: Vec<&'a Stmt>,
    /// Expressions anywhere in the source.
    pub(super) all: Vec<&'a Expr>,
    /// Statements anywhere in the source.
    pub(super) every: Vec<&'a Stmt>,
}

impl<'a> Sites<'a> {
    pub(super) fn new(source: &'a str, module: &'a ModModule, line: Option<u32>) -> Self {
        let mut collected = Collected::default();
        collected.visit_body(&module.body);
        let Collected { expressions: all, statements: every } = collected;
        let bytes = line.map(|line| line_bytes(source, line));
        let near = |range: TextRange| {
            bytes.is_none_or(|(start, end)| range.start().to_usize() < end && range.end().to_usize() > start)
        };
        let expressions = all.iter().copied().filter(|one| near(one.range())).collect();
        let statements = every.iter().copied().filter(|one| near(one.range())).collect();
        Self { source, module, expressions, statements, all, every }
    }

    pub(super) fn text(&self, node: &impl Ranged) -> &'a str {
        self.source.get(node.range().to_std_range()).unwrap_or_default()
    }

    /// Puts a call around an expression.
    pub(super) fn wrap(&self, expr: &Expr, function: &str) -> Edit {
        Edit::replace(expr.range(), format!("{function}({})", self.text(expr)))
    }

    /// An edit that adds a line before the first statement that is neither docstring nor `__future__`.
    pub(super) fn add_line(&self, text: &str) -> Edit {
        let first = self.module.body.iter().enumerate().find(|(at, stmt)| match stmt {
            Stmt::Expr(one) => *at > 0 || !one.value.is_string_literal_expr(),
            Stmt::ImportFrom(one) => one.module.as_ref().is_none_or(|module| module.as_str() != "__future__"),
            _ => true,
        });
        match first {
            // A decorated statement begins at its decorator.
            Some((_, stmt)) => Edit::insert(stmt.range().start().to_usize(), format!("{text}\n")),
            None => Edit::insert(self.source.len(), format!("\n{text}\n")),
        }
    }
}

/// The bytes of a line, from 1.
fn line_bytes(source: &str, line: u32) -> (usize, usize) {
    let mut start = 0;
    for (count, text) in source.split_inclusive('\n').enumerate() {
        if count + 1 == line as usize {
            return (start, start + text.len());
        }
        start += text.len();
    }
    (0, source.len())
}

#[derive(Default)]
struct Collected<'a> {
    expressions: Vec<&'a Expr>,
    statements: Vec<&'a Stmt>,
}

impl<'a> Visitor<'a> for Collected<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.statements.push(stmt);
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        self.expressions.push(expr);
        walk_expr(self, expr);
    }
}
