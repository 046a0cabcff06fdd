//! The names that a value may come from, for the paths of values within a source.

use super::super::builtins;
use super::super::facts::Symbol;
use super::super::library::{gives_new, gives_new_container, gives_scalar};
use super::super::proof::Obligation;
use super::purity::{is_literal, is_text, passed_on};
use super::walk::{Origin, Walk};
use ruff_python_ast::{Expr, ExprCall};

/// Most levels of an expression that are looked at; with more, nothing is proved of the source.
const DEPTH_MAX: u32 = 100;

/// The facts about an origin that the expressions around it show.
#[derive(Clone, Default)]
struct Around {
    is_held: bool,
    unless: Option<Obligation>,
    depth: u32,
}

impl Walk {
    /// A target is bound to a value.
    pub(super) fn derive(&mut self, target: &Expr, value: &Expr) {
        if !self.sound() || is_literal(value) {
            return;
        }
        let origins = self.origins(value);
        // Several targets take the value apart.
        let is_whole = matches!(target, Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_));
        self.derive_target(target, &origins, !is_whole);
    }

    /// A target is bound to parts of a value, one after another.
    pub(super) fn derive_parts(&mut self, target: &Expr, value: &Expr) {
        if self.sound() {
            let origins = self.origins(value);
            self.derive_target(target, &origins, true);
        }
    }

    fn derive_target(&mut self, target: &Expr, origins: &[Origin], takes_apart: bool) {
        match target {
            Expr::Name(name) => {
                let symbol = self.symbol(name.id.as_str());
                self.derive_name(symbol, origins, takes_apart);
            }
            Expr::Tuple(one) => one.elts.iter().for_each(|part| self.derive_target(part, origins, true)),
            Expr::List(one) => one.elts.iter().for_each(|part| self.derive_target(part, origins, true)),
            Expr::Starred(one) => self.derive_target(&one.value, origins, true),
            Expr::Attribute(one) => self.hold(&one.value, origins),
            Expr::Subscript(one) => self.hold(&one.value, origins),
            _ => {}
        }
    }

    /// A target is augmented by a value, of which it may take parts in.
    pub(super) fn augmented_by(&mut self, target: &Expr, value: &Expr) {
        if !self.sound() {
            return;
        }
        let origins = self.origins(value);
        self.hold(target, &origins);
        let object = match target {
            Expr::Attribute(one) => self.own(&one.value),
            Expr::Subscript(one) => self.own(&one.value),
            _ => None,
        };
        if let (Some(draft), Some(symbol)) = (&mut self.draft, object) {
            draft.augment(symbol);
        }
    }

    /// A name is bound to a value of these origins, or to parts of it.
    pub(super) fn derive_name(&mut self, symbol: Symbol, origins: &[Origin], takes_apart: bool) {
        for Origin { name, is_held, unless } in origins {
            self.facts.flows.add(*name, symbol, *is_held && !takes_apart, unless.clone());
        }
    }

    /// The value of an expression becomes one of what the innermost function gives.
    pub(super) fn give_back(&mut self, value: &Expr) {
        if let Some(function) = self.functions.last().copied().filter(|_| self.sound()) {
            let origins = self.origins(value);
            self.derive_name(function, &origins, false);
        }
    }

    /// The arguments of a method become parts of its object.
    pub(super) fn stored(&mut self, object: &Expr, call: &ExprCall) {
        let mut origins = Vec::new();
        for argument in &call.arguments.args {
            origins.extend(self.origins(argument));
        }
        for keyword in &call.arguments.keywords {
            origins.extend(self.origins(&keyword.value));
        }
        self.hold(object, &origins);
    }

    /// Values become parts of the value in an expression.
    fn hold(&mut self, object: &Expr, origins: &[Origin]) {
        if let Some(symbol) = self.own(object)
            && let Some(draft) = self.draft.as_mut().filter(|_| !origins.is_empty())
        {
            draft.hold(symbol);
        }
        let mut base = object;
        loop {
            base = match base {
                Expr::Attribute(one) => &one.value,
                Expr::Subscript(one) => &one.value,
                Expr::Name(name) => {
                    let symbol = self.symbol(name.id.as_str());
                    for Origin { name, unless, .. } in origins {
                        self.facts.flows.add(*name, symbol, true, unless.clone());
                    }
                    return;
                }
                _ => return,
            }
        }
    }

    /// The names whose values may be the value of an expression, or a part of it.
    pub(super) fn origins(&mut self, expr: &Expr) -> Vec<Origin> {
        let mut found = Vec::new();
        self.find(expr, &Around::default(), &mut found);
        found
    }

    fn find(&mut self, expr: &Expr, around: &Around, found: &mut Vec<Origin>) {
        if self.looks_left == 0 || around.depth >= DEPTH_MAX {
            return self.facts.flows.give_up();
        }
        self.looks_left -= 1;
        let inner = Around { depth: around.depth + 1, ..around.clone() };
        let held = Around { is_held: true, ..inner.clone() };
        match expr {
            Expr::Name(name) => {
                let (symbol, Around { is_held, unless, .. }) = (self.symbol(name.id.as_str()), inner);
                found.push(Origin { name: symbol, is_held, unless });
            }
            Expr::Attribute(one) => self.find(&one.value, &inner, found),
            Expr::Subscript(one) => self.find(&one.value, &inner, found),
            Expr::Starred(one) => self.find(&one.value, &inner, found),
            Expr::Await(one) => self.find(&one.value, &inner, found),
            Expr::Named(one) => self.find(&one.value, &inner, found),
            Expr::BoolOp(one) => one.values.iter().for_each(|value| self.find(value, &inner, found)),
            Expr::If(one) => [&one.body, &one.orelse].into_iter().for_each(|value| self.find(value, &inner, found)),
            Expr::Lambda(one) => self.find(&one.body, &inner, found),
            Expr::Call(call) => self.find_in_call(call, &inner, found),
            Expr::Tuple(one) => one.elts.iter().for_each(|part| self.find(part, &held, found)),
            Expr::List(one) => one.elts.iter().for_each(|part| self.find(part, &held, found)),
            Expr::Set(one) => one.elts.iter().for_each(|part| self.find(part, &held, found)),
            Expr::Dict(one) => one.items.iter().for_each(|item| self.find(&item.value, &held, found)),
            Expr::BinOp(one) => [&one.left, &one.right].into_iter().for_each(|side| self.find(side, &held, found)),
            Expr::ListComp(one) => self.find(&one.elt, &held, found),
            Expr::SetComp(one) => self.find(&one.elt, &held, found),
            Expr::Generator(one) => self.find(&one.elt, &held, found),
            Expr::DictComp(one) => self.find(&one.value, &held, found),
            // Operators and texts give something new.
            _ => {}
        }
    }

    fn find_in_call(&mut self, call: &ExprCall, around: &Around, found: &mut Vec<Origin>) {
        let mut arguments = around.clone();
        match &*call.func {
            Expr::Attribute(method) => {
                if is_text(&method.value) || gives_new(method.attr.as_str()) {
                    return;
                }
                let symbol = self.symbol(method.attr.as_str());
                found.push(Origin { name: symbol, is_held: around.is_held, unless: around.unless.clone() });
                self.find(&method.value, around, found);
                arguments.unless = around.unless.clone().or_else(|| self.fresh(&call.func));
            }
            Expr::Name(name) => match self.builtin_called(name.id.as_str()) {
                Some(builtin) if gives_scalar(&builtin) => return,
                Some(builtin) if builtins::leaves_arguments(&builtin) => {
                    arguments.is_held |= gives_new_container(&builtin);
                }
                _ => {
                    let symbol = self.symbol(name.id.as_str());
                    found.push(Origin { name: symbol, is_held: around.is_held, unless: around.unless.clone() });
                    arguments.unless = around.unless.clone().or_else(|| self.fresh(&call.func));
                }
            },
            other => self.find(other, around, found),
        }
        passed_on(call).for_each(|argument| self.find(argument, &arguments, found));
    }

    fn fresh(&mut self, function: &Expr) -> Option<Obligation> {
        self.dotted(function).map(Obligation::Fresh)
    }
}
