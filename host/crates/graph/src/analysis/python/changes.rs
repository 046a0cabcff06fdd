//! Uses that may change a value in place, with what would prove that they do not.
//!
//! A use of a name in which only the source is known may change the value: a method may, and so may a function that is
//! given it. Nothing here decides that it does not; the obligations say what the graph would have to know for that.

use super::super::builtins;
use super::super::facts::Symbol;
use super::super::library;
use super::super::proof::{DottedName, Doubt, Obligation};
use super::super::{Reason, VariableName};
use super::expression::name_of;
use super::purity::{is_text, passed_on};
use super::scope::Variable;
use super::walk::Walk;
use ruff_python_ast::visitor::walk_expr;
use ruff_python_ast::{Expr, ExprAttribute, ExprCall};

/// The name of a called expression that is neither a name nor an attribute.
const NAMELESS: &str = "a function without a name";

/// Most calls within each other that a change is followed through; further ones end the proofs of the source.
const CALLS_MAX: u32 = 32;

/// A use that may change values.
#[derive(Clone, Copy)]
struct Change<'a> {
    reason: &'a Reason,
    doubt: &'a Doubt,
    /// Calls between the value and the place of the change.
    calls: u32,
}

impl Walk {
    /// Stores to an attribute or an item.
    pub(super) fn store_within(&mut self, target: &Expr, reason: &Reason) {
        walk_expr(self, target);
        let value = match target {
            Expr::Attribute(one) => {
                // An object may have a method of its own.
                self.facts.methods.insert(one.attr.as_str().into());
                &one.value
            }
            Expr::Subscript(one) => &one.value,
            _ => return,
        };
        self.mutate(value, reason, &Doubt::None);
    }

    /// The value of the name in an expression may be changed in place.
    pub(super) fn mutate(&mut self, expr: &Expr, reason: &Reason, doubt: &Doubt) {
        self.change(expr, Change { reason, doubt, calls: 0 }, false);
    }

    fn change(&mut self, expr: &Expr, change: Change<'_>, within: bool) {
        let (mut base, mut within) = (expr, within);
        loop {
            base = match base {
                Expr::Attribute(one) => &one.value,
                Expr::Subscript(one) => &one.value,
                Expr::Starred(one) => &one.value,
                Expr::Await(one) => &one.value,
                Expr::Named(one) => &one.target,
                Expr::Name(name) => return self.change_name(name.id.as_str(), change, within),
                Expr::Call(call) if self.sound() => return self.change_through(call, change),
                _ => return,
            };
            within = true;
        }
    }

    pub(super) fn mutate_name(&mut self, name: &str, reason: &Reason, doubt: &Doubt) {
        self.change_name(name, Change { reason, doubt, calls: 0 }, false);
    }

    fn change_name(&mut self, name: &str, Change { reason, doubt, .. }: Change<'_>, within: bool) {
        let symbol = self.symbol(name);
        let variable = self.scopes.variable(symbol);
        if variable == Variable::Global && self.is_untouched_builtin(symbol, reason) {
            return;
        }
        self.facts.doubt(symbol, doubt, within);
        match (variable, &mut self.draft) {
            (Variable::Global, draft) => {
                if let Some(draft) = draft {
                    draft.change_global(self.facts.name(symbol), doubt);
                }
                self.facts.mutate(symbol, reason);
            }
            (Variable::Local | Variable::OfClass(_), Some(draft)) => draft.change_local(symbol, doubt, within),
            (Variable::Local | Variable::OfClass(_), None) => {}
        }
    }

    /// `str.lower(x)` and `map(int, x)` change neither `str` nor `int`.
    fn is_untouched_builtin(&self, symbol: Symbol, reason: &Reason) -> bool {
        let stores = matches!(reason, Reason::AttributeStore | Reason::SubscriptStore | Reason::Augmented);
        !stores && !self.facts.is_written(symbol) && builtins::is_builtin(self.facts.name(symbol))
    }

    /// The result of a call may be changed in place, and with it the values that the call shares with it.
    fn change_through(&mut self, call: &ExprCall, change: Change<'_>) {
        if change.calls >= CALLS_MAX {
            return self.facts.flows.give_up();
        }
        let (calls, shared) = (change.calls + 1, change.doubt.through(None));
        match &*call.func {
            Expr::Attribute(method) => {
                let name = method.attr.as_str();
                if is_text(&method.value) || library::gives_new(name) {
                    return;
                }
                self.touch(name, &shared);
                self.change(&method.value, Change { doubt: &shared, calls, ..change }, true);
            }
            Expr::Name(name) => {
                if self.is_harmless_builtin(name.id.as_str()) {
                    return;
                }
                self.touch(name.id.as_str(), &shared);
            }
            _ => {}
        }
        let doubt = change.doubt.through(self.dotted(&call.func));
        passed_on(call).for_each(|argument| self.given(argument, Change { doubt: &doubt, calls, ..change }));
    }

    /// Notes that the results of a function of this name may be changed.
    fn touch(&mut self, function: &str, doubt: &Doubt) {
        let symbol = self.symbol(function);
        self.facts.doubt(symbol, doubt, true);
    }

    fn is_harmless_builtin(&mut self, name: &str) -> bool {
        self.builtin_called(name).is_some_and(|name| builtins::leaves_arguments(&name))
    }

    /// A function may change its argument, and also the elements of a container.
    fn given(&mut self, expr: &Expr, change: Change<'_>) {
        match expr {
            Expr::Tuple(one) => one.elts.iter().for_each(|element| self.given(element, change)),
            Expr::List(one) => one.elts.iter().for_each(|element| self.given(element, change)),
            Expr::Set(one) => one.elts.iter().for_each(|element| self.given(element, change)),
            Expr::Dict(one) => one.items.iter().for_each(|item| self.given(&item.value, change)),
            Expr::BoolOp(one) => one.values.iter().for_each(|value| self.given(value, change)),
            Expr::If(one) => [&one.body, &one.orelse].into_iter().for_each(|value| self.given(value, change)),
            _ => self.change(expr, change, false),
        }
    }

    /// A call of something that the source does not show.
    pub(super) fn unknown_call(&mut self, call: &ExprCall) {
        let (function, doubt) = match &*call.func {
            Expr::Attribute(method) if is_text(&method.value) => return,
            Expr::Attribute(method) => match self.method_called(call, method) {
                Some(doubt) => (method.attr.as_str(), doubt),
                None => return,
            },
            other => {
                let leaves = |function| Doubt::Unless(Obligation::Leaves(function));
                let doubt = self.dotted(other).map_or(Doubt::Kind, leaves);
                (name_of(other).unwrap_or(NAMELESS), doubt)
            }
        };
        let reason = Reason::Argument { function: function.into() };
        let change = Change { reason: &reason, doubt: &doubt, calls: 0 };
        call.arguments.args.iter().for_each(|argument| self.given(argument, change));
        call.arguments.keywords.iter().for_each(|keyword| self.given(&keyword.value, change));
        // A value that a function made itself is of the language, and so are its methods.
        let is_own = matches!(&*call.func, Expr::Attribute(method) if self.own(&method.value).is_some());
        if let Some(draft) = self.draft.as_mut().filter(|_| !is_own) {
            draft.call(&doubt);
        }
    }

    /// Takes in the object of a method; gives what would prove that the method leaves its arguments as they are, or
    /// none if that is certain.
    fn method_called(&mut self, call: &ExprCall, method: &ExprAttribute) -> Option<Doubt> {
        let name = method.attr.as_str();
        let reason = Reason::MethodCall { method: name.into() };
        let known = Doubt::Unless(Obligation::Method(name.into()));
        if only_looks(call, name) {
            self.mutate(&method.value, &reason, &known);
            return Some(known);
        }
        self.mutate(&method.value, &reason, &Doubt::Kind);
        if !library::changes_container_alone(name) {
            let leaves = |function| Doubt::Unless(Obligation::Leaves(function));
            return Some(self.dotted(&call.func).map_or(Doubt::Kind, leaves));
        }
        self.stored(&method.value, call);
        match self.own(&method.value) {
            Some(_) => None,
            None if library::stores(name) => Some(known),
            None => Some(Doubt::Kind),
        }
    }

    /// The variable that an expression is, if the function whose body the walk is in made all of its values.
    pub(super) fn own(&mut self, expr: &Expr) -> Option<Symbol> {
        let symbol = name_of(expr).map(|name| self.symbol(name))?;
        let is_local = self.scopes.variable(symbol) == Variable::Local;
        (is_local && self.draft.as_ref()?.owns(symbol)).then_some(symbol)
    }

    /// The name of a function, if it is a variable of the namespace or an attribute of one.
    pub(super) fn dotted(&mut self, function: &Expr) -> Option<DottedName> {
        let (mut base, mut attributes) = (function, Vec::new());
        while let Expr::Attribute(one) = base {
            attributes.push(one.attr.as_str());
            base = &one.value;
        }
        let symbol = name_of(base).map(|name| self.symbol(name))?;
        let root: VariableName = self.facts.name(symbol).clone();
        let path: String = attributes.iter().rev().flat_map(|attribute| [".", attribute]).collect();
        (self.scopes.variable(symbol) == Variable::Global).then(|| DottedName { root, path: path.into() })
    }
}

/// True for a call of a method that leaves its value and its arguments as they are, if it is one of the library.
fn only_looks(call: &ExprCall, method: &str) -> bool {
    // A queue gives a value away for `get()` and `get(True)`, and a dictionary always takes a key.
    let first = call.arguments.args.first();
    let has_key = first.is_some_and(|key| !matches!(key, Expr::BooleanLiteral(_) | Expr::NoneLiteral(_)));
    library::only_looks(method) && (method != "get" || has_key) && call.arguments.find_keyword("inplace").is_none()
}
