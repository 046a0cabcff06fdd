//! The kinds of values that a source binds names to, as far as the source shows them.
//!
//! A kind that is not certain is none. Nothing here follows a value: a name that is bound to another name has no kind.

use super::super::proof::ValueKind;
use super::super::{builtins, library};
use super::expression::name_of;
use super::purity::{Draft, Locals, is_literal};
use super::scope::Kind;
use super::walk::Walk;
use ruff_python_ast::{CmpOp, Expr, StmtFunctionDef, UnaryOp};
use rustc_hash::FxHashSet;

impl Walk {
    /// Begins a proof about a function of the module. True when there is one.
    pub(super) fn begin_draft(&mut self, function: &StmtFunctionDef) -> bool {
        let is_plain = function.decorator_list.is_empty() && !function.is_async && function.type_params.is_none();
        if !self.sound() || !is_plain || self.scopes.kind() != Kind::Module || self.draft.is_some() {
            return false;
        }
        let Locals { names, made_with, makers, is_refused } = Locals::of(function);
        let is_shadowed = |walk: &mut Self, name: &&str| {
            let symbol = walk.symbol(name);
            names.contains_key(name) || (builtins::is_builtin(name) && walk.facts.is_written(symbol))
        };
        if is_refused || made_with.iter().any(|name| is_shadowed(self, name)) {
            return false;
        }
        let (mut own, mut holding) = (FxHashSet::default(), FxHashSet::default());
        for (name, holds) in names.iter().filter_map(|(name, made)| made.map(|holds| (name, holds))) {
            let symbol = self.symbol(name);
            own.insert(symbol);
            if holds {
                holding.insert(symbol);
            }
        }
        self.draft = Some(Draft::new(own, holding, makers));
        true
    }

    /// The kind of a number, a text or a truth value.
    pub(super) fn plain(&mut self, value: &Expr) -> Option<ValueKind> {
        let is_plain = match value {
            Expr::UnaryOp(one) => one.op == UnaryOp::Not || is_literal(value),
            Expr::Compare(one) => {
                one.ops.iter().all(|op| matches!(op, CmpOp::In | CmpOp::NotIn | CmpOp::Is | CmpOp::IsNot))
            }
            Expr::Call(call) => name_of(&call.func)
                .and_then(|name| self.builtin_called(name))
                .is_some_and(|name| library::gives_scalar(&name)),
            _ => is_literal(value),
        };
        (is_plain && self.sound() && self.scopes.kind() == Kind::Module).then_some(ValueKind::Plain)
    }
}
