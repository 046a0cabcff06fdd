//! Expressions: the names that they read, bind and may change in place.

use super::super::builtins;
use super::super::facts::{Range, Symbol};
use super::super::proof::{Doubt, ValueKind};
use super::super::{ANY_METHOD, Reason, VariableName};
use super::purity::Draft;
use super::scope::{Kind, Scope, Variable};
use super::walk::{Walk, bytes};
use ruff_python_ast::visitor::{Visitor, walk_arguments, walk_expr};
use ruff_python_ast::{
    Comprehension, Expr, ExprBoolOp, ExprCall, ExprCompare, ExprIf, ExprLambda, ExprYield, ExprYieldFrom, Parameters,
    Pattern, Stmt,
};
use ruff_text_size::Ranged;

use super::bindings::targets;

impl<'a> Visitor<'a> for Walk {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        self.block(std::slice::from_ref(stmt));
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        self.pattern(pattern);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => self.read_name(name.id.as_str(), bytes(name.range)),
            Expr::Named(named) => {
                self.visit_expr(&named.value);
                self.derive(&named.target, &named.value);
                if let Expr::Name(name) = &*named.target {
                    let symbol = self.symbol(name.id.as_str());
                    let variable = self.scopes.variable_of_walrus(symbol);
                    self.bind_variable(variable, symbol, None);
                }
            }
            Expr::BoolOp(one) => self.either(one),
            Expr::Compare(one) => self.compared(one),
            Expr::If(one) => self.conditional(one),
            Expr::Lambda(one) => self.lambda(one),
            Expr::Call(one) => self.call(one),
            Expr::ListComp(one) => self.comprehension(&one.generators, &[&one.elt]),
            Expr::SetComp(one) => self.comprehension(&one.generators, &[&one.elt]),
            Expr::Generator(one) => self.comprehension(&one.generators, &[&one.elt]),
            Expr::DictComp(one) => {
                let parts: Vec<&Expr> = one.key.as_deref().into_iter().chain([&*one.value]).collect();
                self.comprehension(&one.generators, &parts);
            }
            Expr::Yield(_) | Expr::YieldFrom(_) => self.suspend(expr, "`yield` outside of a function"),
            Expr::Await(_) => self.suspend(expr, "`await` outside of a function"),
            _ => walk_expr(self, expr),
        }
    }
}

impl Walk {
    /// The name in Python's mangled form.
    pub(super) fn symbol(&mut self, name: &str) -> Symbol {
        match self.scopes.mangled(name) {
            Some(mangled) => self.facts.symbol(&mangled),
            None => self.facts.symbol(name),
        }
    }

    fn read_name(&mut self, name: &str, range: Range) {
        let symbol = self.symbol(name);
        self.read(symbol, range);
    }

    fn read(&mut self, symbol: Symbol, range: Range) {
        match self.scopes.variable(symbol) {
            Variable::Local => return,
            Variable::OfClass(scope) if self.facts.flow.status((scope, symbol)).is_some() => return,
            Variable::OfClass(_) | Variable::Global => {}
        }
        // Each method has a `__class__` of its own.
        if self.facts.deferred == 0 || &**self.facts.name(symbol) != "__class__" {
            self.facts.read(symbol, range);
        }
    }

    pub(super) fn bind_name(&mut self, name: &str) {
        self.bind_name_as(name, None);
    }

    /// Binds a name to a value, of this kind if it is known.
    pub(super) fn bind_name_as(&mut self, name: &str, kind: Option<ValueKind>) {
        let symbol = self.symbol(name);
        let variable = self.scopes.variable(symbol);
        self.bind_variable(variable, symbol, kind);
    }

    fn bind_variable(&mut self, variable: Variable, symbol: Symbol, kind: Option<ValueKind>) {
        match variable {
            Variable::Local => {}
            Variable::OfClass(scope) => {
                // A name that a class binds may be called as a method of its objects.
                let name = self.facts.name(symbol).clone();
                self.facts.methods.insert(name);
                self.facts.flow.bind((scope, symbol));
            }
            Variable::Global => {
                self.draft.iter_mut().for_each(Draft::refuse);
                self.facts.bind(symbol, kind);
            }
        }
    }

    pub(super) fn unbind(&mut self, symbol: Symbol) {
        match self.scopes.variable(symbol) {
            Variable::Local => {}
            Variable::OfClass(scope) => self.facts.flow.unbind((scope, symbol)),
            Variable::Global => {
                self.draft.iter_mut().for_each(Draft::refuse);
                self.facts.unbind(symbol);
            }
        }
    }

    /// Stores to a target of an assignment, a loop, a `with`.
    pub(super) fn store(&mut self, target: &Expr) {
        match target {
            Expr::Name(name) => self.bind_name(name.id.as_str()),
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|one| self.store(one)),
            Expr::List(list) => list.elts.iter().for_each(|one| self.store(one)),
            Expr::Starred(starred) => self.store(&starred.value),
            Expr::Attribute(_) => self.store_within(target, &Reason::AttributeStore),
            Expr::Subscript(_) => self.store_within(target, &Reason::SubscriptStore),
            _ => self.visit_expr(target),
        }
    }

    pub(super) fn augmented(&mut self, target: &Expr) {
        if let Expr::Name(name) = target {
            self.read_name(name.id.as_str(), bytes(name.range));
            if self.sound() {
                self.mutate_name(name.id.as_str(), &Reason::Augmented, &Doubt::Kind);
            }
        }
    }

    pub(super) fn delete(&mut self, target: &Expr) {
        match target {
            Expr::Name(name) => {
                let symbol = self.symbol(name.id.as_str());
                self.read(symbol, bytes(name.range));
                self.unbind(symbol);
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|one| self.delete(one)),
            Expr::List(list) => list.elts.iter().for_each(|one| self.delete(one)),
            _ => self.store(target),
        }
    }

    fn either(&mut self, one: &ExprBoolOp) {
        let mut values = one.values.iter();
        values.next().into_iter().for_each(|first| self.visit_expr(first));
        let mark = self.facts.flow.mark();
        values.for_each(|value| self.visit_expr(value));
        self.facts.flow.maybe(mark);
    }

    fn compared(&mut self, one: &ExprCompare) {
        self.visit_expr(&one.left);
        let mut comparators = one.comparators.iter();
        comparators.next().into_iter().for_each(|first| self.visit_expr(first));
        let mark = self.facts.flow.mark();
        comparators.for_each(|comparator| self.visit_expr(comparator));
        self.facts.flow.maybe(mark);
    }

    fn conditional(&mut self, one: &ExprIf) {
        self.visit_expr(&one.test);
        let mark = self.facts.flow.mark();
        self.visit_expr(&one.body);
        let body = self.facts.flow.take(mark);
        self.visit_expr(&one.orelse);
        let orelse = self.facts.flow.take(mark);
        self.facts.flow.join(&[body, orelse]);
    }

    pub(super) fn defaults(&mut self, parameters: &Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
                let (symbol, origins) = (self.symbol(parameter.name().as_str()), self.origins(default));
                self.derive_name(symbol, &origins, false);
            }
        }
    }

    fn lambda(&mut self, one: &ExprLambda) {
        one.parameters.iter().for_each(|parameters| self.defaults(parameters));
        let mut bindings = self.bindings();
        one.parameters.iter().for_each(|parameters| bindings.parameters(parameters));
        bindings.visit_expr(&one.body);
        let found = bindings.found;
        self.body(Kind::Function, found, |walk| walk.visit_expr(&one.body));
    }

    fn suspend(&mut self, expr: &Expr, message: &'static str) {
        if !self.scopes.in_function() {
            self.facts.refuse(expr.range().start().into(), message);
        }
        walk_expr(self, expr);
        self.draft.iter_mut().for_each(Draft::refuse);
        if let Expr::Yield(ExprYield { value: Some(value), .. }) | Expr::YieldFrom(ExprYieldFrom { value, .. }) = expr {
            self.give_back(value);
        }
        self.facts.may_call();
    }

    /// The first iterable belongs to the scope around the comprehension; all else runs in a scope of its own, or not at
    /// all.
    fn comprehension(&mut self, generators: &[Comprehension], parts: &[&Expr]) {
        generators.first().into_iter().for_each(|first| self.visit_expr(&first.iter));
        let mut names = Vec::new();
        generators.iter().for_each(|one| targets(&one.target, &mut names));
        let mut found = Scope::unnamed(Kind::Comprehension);
        found.locals = names.into_iter().map(|name| self.symbol(name)).collect();
        self.scopes.open(Kind::Comprehension).locals = found.locals;
        let mark = self.facts.flow.mark();
        for (at, generator) in generators.iter().enumerate() {
            if at > 0 {
                self.visit_expr(&generator.iter);
            }
            self.derive_parts(&generator.target, &generator.iter);
            self.store(&generator.target);
            generator.ifs.iter().for_each(|test| self.visit_expr(test));
        }
        parts.iter().for_each(|part| self.visit_expr(part));
        self.facts.flow.maybe(mark);
        self.scopes.close();
    }

    fn call(&mut self, call: &ExprCall) {
        self.visit_expr(&call.func);
        walk_arguments(self, &call.arguments);
        let bare = call.arguments.args.is_empty() && call.arguments.keywords.is_empty();
        let keyed = call.arguments.find_keyword("key").is_some();
        if self.makes_methods(call) {
            self.facts.methods.insert(ANY_METHOD.into());
        }
        if self.called(name_of(&call.func), bare, keyed) && !self.applies_builtin(call) {
            self.unknown_call(call);
        }
    }

    /// True for a call that may give a class or an object methods of any name.
    fn makes_methods(&mut self, call: &ExprCall) -> bool {
        match name_of(&call.func) {
            Some("setattr") => self.builtin_called("setattr").is_some(),
            Some("type") => call.arguments.args.len() > 1 && self.builtin_called("type").is_some(),
            _ => false,
        }
    }

    /// True for `map(int, xs)`, and the same of other builtins that leave their arguments as they are.
    fn applies_builtin(&mut self, call: &ExprCall) -> bool {
        let Some(applied) = call.arguments.args.first().and_then(name_of) else { return false };
        let function = name_of(&call.func).filter(|name| matches!(*name, "map" | "filter"));
        function.is_some_and(|name| self.builtin_called(name).is_some())
            && self.builtin_called(applied).is_some_and(|name| builtins::leaves_arguments(&name))
    }

    /// Takes in a call, after its function and arguments: its name, if it has one, whether it has no arguments, and
    /// whether one is a `key`. True when the call may change its arguments, and the object of a method.
    fn called(&mut self, function: Option<&str>, bare: bool, keyed: bool) -> bool {
        match function.and_then(|name| self.builtin_called(name)) {
            Some(name) if self.sees_namespace(&name, bare) => {
                self.draft.iter_mut().for_each(Draft::refuse);
                self.facts.may_call();
            }
            Some(name) if builtins::leaves_arguments(&name) => {
                if keyed {
                    self.facts.may_call();
                }
            }
            _ => {
                self.facts.may_call();
                return self.sound();
            }
        }
        false
    }

    /// The called builtin, unless the source gave the name another meaning.
    pub(super) fn builtin_called(&mut self, name: &str) -> Option<VariableName> {
        let symbol = self.symbol(name);
        let plain = self.scopes.variable(symbol) == Variable::Global && !self.facts.is_written(symbol);
        (plain && builtins::is_builtin(name)).then(|| self.facts.name(symbol).clone())
    }

    /// True for a call that may reach every name of the namespace.
    fn sees_namespace(&mut self, function: &VariableName, bare: bool) -> bool {
        let reason = match &**function {
            "exec" | "eval" => Reason::CodeFromText { function: function.clone() },
            "globals" => Reason::Namespace { function: function.clone() },
            // Within a function these show its locals.
            "locals" | "vars" | "dir" if bare && !self.scopes.in_function() => {
                Reason::Namespace { function: function.clone() }
            }
            _ => return false,
        };
        self.facts.sees_all.get_or_insert(reason);
        true
    }
}

/// The name, if the expression is only a name.
pub(super) fn name_of(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Name(name) => Some(name.id.as_str()),
        _ => None,
    }
}
