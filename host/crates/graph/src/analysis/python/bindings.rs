//! The names that a body binds: those are its locals, wherever in it they are bound.

use super::super::facts::Facts;
use super::scope::{Scope, Scopes};
use ruff_python_ast::visitor::{Visitor, walk_expr, walk_pattern, walk_stmt};
use ruff_python_ast::{Alias, Comprehension, ExceptHandler, Expr, ExprContext, Parameters, Pattern, Stmt, TypeParams};

/// Collects the names that a body binds into a scope.
pub(super) struct Bindings<'s> {
    pub(super) facts: &'s mut Facts,
    pub(super) mangling: Option<&'s Scopes>,
    pub(super) found: Scope,
    /// Depth of comprehensions, whose targets are their own.
    pub(super) comprehensions: usize,
}

impl Bindings<'_> {
    pub(super) fn body(mut self, body: &[Stmt]) -> Scope {
        self.visit_body(body);
        let Scope { globals, nonlocals, .. } = &self.found;
        let elsewhere: Vec<_> = globals.union(nonlocals).copied().collect();
        for symbol in elsewhere {
            self.found.locals.remove(&symbol);
        }
        self.found
    }

    pub(super) fn parameters(&mut self, parameters: &Parameters) {
        for parameter in parameters {
            self.bind(parameter.name().as_str());
        }
    }

    fn bind(&mut self, name: &str) {
        let symbol = self.symbol(name);
        self.found.locals.insert(symbol);
    }

    fn symbol(&mut self, name: &str) -> u32 {
        match self.mangling.and_then(|scopes| scopes.mangled(name)) {
            Some(mangled) => self.facts.symbol(&mangled),
            None => self.facts.symbol(name),
        }
    }

    /// Default values are evaluated outside the function.
    fn defaults(&mut self, parameters: &Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
            }
        }
    }

    fn comprehension<'a>(&mut self, generators: &'a [Comprehension], parts: &[&'a Expr]) {
        self.comprehensions += 1;
        for generator in generators {
            self.visit_comprehension(generator);
        }
        for part in parts {
            self.visit_expr(part);
        }
        self.comprehensions -= 1;
    }
}

impl<'a> Visitor<'a> for Bindings<'_> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => {
                self.bind(function.name.as_str());
                function.decorator_list.iter().for_each(|one| self.visit_decorator(one));
                self.defaults(&function.parameters);
            }
            Stmt::ClassDef(class) => {
                self.bind(class.name.as_str());
                class.decorator_list.iter().for_each(|one| self.visit_decorator(one));
                if let (Some(arguments), None) = (&class.arguments, &class.type_params) {
                    self.visit_arguments(arguments);
                }
            }
            Stmt::TypeAlias(alias) => {
                if let Expr::Name(name) = &*alias.name {
                    self.bind(name.id.as_str());
                }
            }
            Stmt::Global(global) => {
                for name in &global.names {
                    let symbol = self.symbol(name.as_str());
                    self.found.globals.insert(symbol);
                }
            }
            Stmt::Nonlocal(nonlocal) => {
                for name in &nonlocal.names {
                    let symbol = self.symbol(name.as_str());
                    self.found.nonlocals.insert(symbol);
                }
            }
            Stmt::AnnAssign(assign) => {
                // `x: int` makes `x` local without binding it.
                if let (Expr::Name(name), true) = (&*assign.target, assign.simple) {
                    self.bind(name.id.as_str());
                }
                walk_stmt(self, stmt);
            }
            _ => walk_stmt(self, stmt),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => {
                if !matches!(name.ctx, ExprContext::Load | ExprContext::Invalid) && self.comprehensions == 0 {
                    self.bind(name.id.as_str());
                }
            }
            Expr::Named(named) => {
                if let Expr::Name(name) = &*named.target {
                    self.bind(name.id.as_str());
                }
                self.visit_expr(&named.value);
            }
            Expr::Lambda(lambda) => {
                if let Some(parameters) = &lambda.parameters {
                    self.defaults(parameters);
                }
            }
            Expr::ListComp(one) => self.comprehension(&one.generators, &[&one.elt]),
            Expr::SetComp(one) => self.comprehension(&one.generators, &[&one.elt]),
            Expr::Generator(one) => self.comprehension(&one.generators, &[&one.elt]),
            Expr::DictComp(one) => {
                let parts: Vec<&Expr> = one.key.as_deref().into_iter().chain([&*one.value]).collect();
                self.comprehension(&one.generators, &parts);
            }
            _ => walk_expr(self, expr),
        }
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        match &alias.asname {
            Some(name) => self.bind(name.as_str()),
            None => self.bind(alias.name.split('.').next().unwrap_or_default()),
        }
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(one) = handler;
        if let Some(name) = &one.name {
            self.bind(name.as_str());
        }
        ruff_python_ast::visitor::walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        match pattern {
            Pattern::MatchAs(one) => one.name.iter().for_each(|name| self.bind(name.as_str())),
            Pattern::MatchStar(one) => one.name.iter().for_each(|name| self.bind(name.as_str())),
            Pattern::MatchMapping(one) => one.rest.iter().for_each(|name| self.bind(name.as_str())),
            _ => {}
        }
        walk_pattern(self, pattern);
    }

    fn visit_type_params(&mut self, _: &'a TypeParams) {}
}

/// The names that a target of a comprehension binds.
pub(super) fn targets<'e>(target: &'e Expr, found: &mut Vec<&'e str>) {
    match target {
        Expr::Name(name) => found.push(name.id.as_str()),
        Expr::Tuple(tuple) => tuple.elts.iter().for_each(|one| targets(one, found)),
        Expr::List(list) => list.elts.iter().for_each(|one| targets(one, found)),
        Expr::Starred(starred) => targets(&starred.value, found),
        _ => {}
    }
}
