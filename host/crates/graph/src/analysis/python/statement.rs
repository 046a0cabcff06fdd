//! Statements, in the order in which Python runs them.

use super::super::Reason;
use super::super::flow::{Branch, Mark};
use super::super::proof::{Doubt, ValueKind};
use super::bindings::Bindings;
use super::expression::name_of;
use super::purity::Draft;
use super::scope::{Kind, Scope};
use super::walk::{Loop, Walk};
use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{
    Alias, Decorator, ExceptHandler, Expr, Identifier, Pattern, Stmt, StmtClassDef, StmtFor, StmtFunctionDef, StmtIf,
    StmtImportFrom, StmtMatch, StmtTry, StmtWhile, StmtWith, TypeParam, TypeParams,
};
use ruff_text_size::TextRange;

/// The most exits of one loop that are kept apart; with more, their common changes are not computed.
const BREAKS_MAX: usize = 16;

/// The most changes by the tests of an `if` with many branches that are kept apart.
const TEST_CHANGES_MAX: usize = 1_000;

impl Walk {
    pub(super) fn block(&mut self, body: &[Stmt]) {
        for stmt in body {
            self.statement(stmt);
        }
    }

    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => self.class(class),
            Stmt::If(one) => self.branches(one),
            Stmt::For(one) => self.for_loop(one),
            Stmt::While(one) => self.while_loop(one),
            Stmt::With(one) => self.with(one),
            Stmt::Match(one) => self.cases(one),
            Stmt::Try(one) => self.attempt(one),
            Stmt::Break(one) => self.leave_loop(one.range, true),
            Stmt::Continue(one) => self.leave_loop(one.range, false),
            Stmt::Import(one) => one.names.iter().for_each(|alias| self.import(alias)),
            Stmt::ImportFrom(one) => self.import_from(one),
            _ => self.simple(stmt),
        }
    }

    fn simple(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Assign(assign) => {
                self.visit_expr(&assign.value);
                let kind = self.plain(&assign.value);
                for target in &assign.targets {
                    self.derive(target, &assign.value);
                    match target {
                        Expr::Name(name) => self.bind_name_as(name.id.as_str(), kind.clone()),
                        other => self.store(other),
                    }
                }
            }
            Stmt::AugAssign(assign) => {
                self.augmented(&assign.target);
                self.visit_expr(&assign.value);
                self.augmented_by(&assign.target, &assign.value);
                self.store(&assign.target);
            }
            Stmt::AnnAssign(assign) => {
                self.visit_expr(&assign.annotation);
                match &assign.value {
                    Some(value) => {
                        self.visit_expr(value);
                        self.derive(&assign.target, value);
                        self.store(&assign.target);
                    }
                    None if matches!(*assign.target, Expr::Name(_)) => {}
                    None => self.visit_expr(&assign.target),
                }
            }
            Stmt::Delete(delete) => delete.targets.iter().for_each(|target| self.delete(target)),
            Stmt::TypeAlias(alias) => {
                let parameters = self.open_type_parameters(alias.type_params.as_deref());
                self.later(|walk| walk.visit_expr(&alias.value));
                self.close_type_parameters(parameters);
                self.store(&alias.name);
            }
            Stmt::Return(one) => {
                if !self.scopes.in_function() {
                    self.facts.refuse(one.range.start().into(), "`return` outside of a function");
                }
                if let Some(value) = &one.value {
                    self.visit_expr(value);
                    self.give_back(value);
                }
                self.facts.jump();
            }
            Stmt::Raise(one) => {
                one.exc.iter().chain(&one.cause).for_each(|value| self.visit_expr(value));
                self.facts.jump();
            }
            Stmt::Assert(one) => {
                self.visit_expr(&one.test);
                let mark = self.facts.flow.mark();
                one.msg.iter().for_each(|message| self.visit_expr(message));
                self.facts.flow.maybe(mark);
            }
            Stmt::Nonlocal(one) if self.scopes.kind() == Kind::Module => {
                self.facts.refuse(one.range.start().into(), "`nonlocal` outside of a function");
            }
            Stmt::Expr(one) => self.visit_expr(&one.value),
            _ => {}
        }
    }

    fn branches(&mut self, one: &StmtIf) {
        self.visit_expr(&one.test);
        let began = self.facts.flow.mark();
        let mut met = vec![self.branch(began, &one.body)];
        let mut has_else = false;
        for clause in &one.elif_else_clauses {
            if let Some(test) = &clause.test {
                self.visit_expr(test);
            } else {
                has_else = true;
            }
            met.push(self.branch(began, &clause.body));
        }
        let rest = self.facts.flow.take(began);
        if !has_else {
            met.push(rest);
        }
        self.facts.flow.join(&met);
    }

    /// Walks one branch, and returns to its start. The tests since `began` ran before it.
    fn branch(&mut self, began: Mark, body: &[Stmt]) -> Branch {
        let mark = self.facts.flow.mark();
        self.block(body);
        if self.facts.flow.changes_since(began) > TEST_CHANGES_MAX + self.facts.flow.changes_since(mark) {
            return self.facts.flow.take(mark);
        }
        let branch = self.facts.flow.since(began);
        self.facts.flow.take(mark);
        branch
    }

    fn for_loop(&mut self, one: &StmtFor) {
        self.visit_expr(&one.iter);
        self.derive_parts(&one.target, &one.iter);
        self.looped(!one.orelse.is_empty(), &one.orelse, |walk| {
            walk.store(&one.target);
            walk.block(&one.body);
        });
    }

    /// No test counts as certain, not even `True`: the code after a loop that only `break` ends has more edges than
    /// necessary, and never fewer.
    fn while_loop(&mut self, one: &StmtWhile) {
        self.visit_expr(&one.test);
        self.looped(!one.orelse.is_empty(), &one.orelse, |walk| walk.block(&one.body));
    }

    /// A loop that may not run at all: the code after it keeps the names that were certain before it, and those of
    /// `else` if no `break` skips that.
    fn looped(&mut self, exits_matter: bool, orelse: &[Stmt], body: impl FnOnce(&mut Self)) {
        let began = self.facts.flow.mark();
        let mut left = self.in_loop(exits_matter.then_some(began), body);
        self.facts.flow.take(began);
        self.facts.flow.doubt_unbound(began, self.facts.flow.mark());
        if !exits_matter {
            return;
        }
        let before_else = self.facts.flow.mark();
        self.block(orelse);
        if left.overflown {
            self.facts.flow.maybe(before_else);
            return;
        }
        left.breaks.push(self.facts.flow.take(began));
        self.facts.flow.join(&left.breaks);
    }

    fn in_loop(&mut self, began: Option<Mark>, body: impl FnOnce(&mut Self)) -> Loop {
        self.loops.push(Loop { began, breaks: Vec::new(), overflown: false });
        body(self);
        self.loops.pop().unwrap_or(Loop { began: None, breaks: Vec::new(), overflown: true })
    }

    fn leave_loop(&mut self, range: TextRange, breaks: bool) {
        let Some(innermost) = self.loops.last_mut() else {
            self.facts.refuse(
                range.start().into(),
                if breaks { "`break` outside of a loop" } else { "`continue` outside of a loop" },
            );
            return;
        };
        if let (Some(began), true) = (innermost.began, breaks) {
            if innermost.breaks.len() < BREAKS_MAX {
                innermost.breaks.push(self.facts.flow.since(began));
            } else {
                innermost.overflown = true;
            }
        }
        self.facts.jump();
    }

    fn with(&mut self, one: &StmtWith) {
        let mut swallowed = None;
        for item in &one.items {
            self.visit_expr(&item.context_expr);
            if self.sound() {
                self.mutate(&item.context_expr, &Reason::MethodCall { method: "__enter__".into() }, &Doubt::Kind);
            }
            self.facts.may_call();
            if let Some(target) = &item.optional_vars {
                self.derive(target, &item.context_expr);
                self.store(target);
            }
            // A context manager may swallow an exception of the rest; then only part of the rest ran.
            if self.sound() && swallowed.is_none() && !self.never_swallows(&item.context_expr) {
                swallowed = Some(self.facts.flow.mark());
            }
        }
        self.block(&one.body);
        if let (Some(mark), 0) = (swallowed, self.facts.deferred) {
            self.facts.flow.maybe(mark);
        }
    }

    /// Files do not swallow exceptions.
    fn never_swallows(&mut self, context: &Expr) -> bool {
        let Expr::Call(call) = context else { return false };
        name_of(&call.func) == Some("open") && self.builtin_called("open").is_some()
    }

    fn cases(&mut self, one: &StmtMatch) {
        self.visit_expr(&one.subject);
        let origins = if self.sound() { self.origins(&one.subject) } else { Vec::new() };
        self.subjects.push(origins);
        let began = self.facts.flow.mark();
        let mut met = Vec::new();
        let mut irrefutable = false;
        for case in &one.cases {
            self.visit_pattern(&case.pattern);
            case.guard.iter().for_each(|guard| self.visit_expr(guard));
            self.block(&case.body);
            met.push(self.facts.flow.take(began));
            irrefutable |= case.guard.is_none() && case.pattern.is_irrefutable();
        }
        self.subjects.pop();
        if !irrefutable {
            met.push(Branch::past());
        }
        self.facts.flow.join(&met);
    }

    fn attempt(&mut self, one: &StmtTry) {
        let began = self.facts.flow.mark();
        self.block(&one.body);
        self.block(&one.orelse);
        let mut met = vec![self.facts.flow.take(began)];
        let left = self.facts.flow.mark();
        for handler in &one.handlers {
            // The body may have ended at any place.
            self.facts.flow.doubt_unbound(began, left);
            self.handler(handler);
            met.push(self.facts.flow.take(began));
        }
        let last = self.last_words(began, &one.finalbody);
        self.facts.flow.join(&met);
        if let Some(last) = last {
            self.facts.flow.apply(&last);
        }
    }

    /// The certain changes of `finally`, walked from a state in which nothing before it is certain.
    fn last_words(&mut self, began: Mark, body: &[Stmt]) -> Option<Branch> {
        if body.is_empty() {
            return None;
        }
        self.facts.flow.doubt_unbound(began, self.facts.flow.mark());
        let doubtful = self.facts.flow.mark();
        self.block(body);
        let last = self.facts.flow.take(doubtful);
        self.facts.flow.take(began);
        Some(last)
    }

    fn handler(&mut self, handler: &ExceptHandler) {
        let ExceptHandler::ExceptHandler(one) = handler;
        one.type_.iter().for_each(|kind| self.visit_expr(kind));
        if let Some(name) = &one.name {
            self.bind_identifier(name);
        }
        self.block(&one.body);
        if let Some(name) = &one.name {
            let symbol = self.symbol(name.as_str());
            self.unbind(symbol);
        }
    }

    fn import(&mut self, alias: &Alias) {
        let module = |name: &str| Some(ValueKind::Module(name.into()));
        match &alias.asname {
            Some(name) => self.bind_name_as(name.as_str(), module(alias.name.as_str())),
            None => {
                let first = alias.name.split('.').next().unwrap_or_default();
                self.bind_name_as(first, module(first));
            }
        }
    }

    fn import_from(&mut self, one: &StmtImportFrom) {
        for alias in &one.names {
            if alias.name.as_str() == "*" {
                let module = one.module.as_ref().map_or(".", Identifier::as_str).into();
                self.facts.sees_all.get_or_insert(Reason::StarImport { module });
            } else {
                let module = one.module.as_ref().filter(|_| one.level == 0);
                let member = module.map(|module| format!("{}.{}", module.as_str(), alias.name.as_str()));
                let kind = member.map(|name| ValueKind::Member(name.into()));
                self.bind_name_as(alias.asname.as_ref().unwrap_or(&alias.name).as_str(), kind);
            }
        }
    }

    pub(super) fn bind_identifier(&mut self, name: &Identifier) {
        self.bind_name(name.as_str());
    }

    fn decorators(&mut self, decorators: &[Decorator]) {
        decorators.iter().for_each(|one| self.visit_expr(&one.expression));
    }

    fn function(&mut self, function: &StmtFunctionDef) {
        self.decorators(&function.decorator_list);
        self.defaults(&function.parameters);
        let parameters = self.open_type_parameters(function.type_params.as_deref());
        for parameter in &*function.parameters {
            parameter.annotation().iter().for_each(|annotation| self.visit_expr(annotation));
        }
        function.returns.iter().for_each(|annotation| self.visit_expr(annotation));
        let mut bindings = self.bindings();
        bindings.parameters(&function.parameters);
        let found = bindings.body(&function.body);
        let drafts = self.begin_draft(function);
        let name = self.symbol(function.name.as_str());
        self.functions.push(name);
        self.body(Kind::Function, found, |walk| walk.block(&function.body));
        self.functions.pop();
        let kind = if drafts { self.draft.take().and_then(Draft::kind) } else { None };
        self.close_type_parameters(parameters);
        if !function.decorator_list.is_empty() {
            self.facts.may_call();
        }
        self.bind_name_as(function.name.as_str(), kind);
    }

    /// Walks a body that runs when it is called.
    pub(super) fn body(&mut self, kind: Kind, found: Scope, walk: impl FnOnce(&mut Self)) {
        let scope = self.scopes.open(kind);
        (scope.locals, scope.globals, scope.nonlocals) = (found.locals, found.globals, found.nonlocals);
        let loops = std::mem::take(&mut self.loops);
        self.later(walk);
        self.loops = loops;
        self.scopes.close();
    }

    pub(super) fn later(&mut self, walk: impl FnOnce(&mut Self)) {
        self.facts.deferred += 1;
        walk(self);
        self.facts.deferred -= 1;
    }

    fn class(&mut self, class: &StmtClassDef) {
        self.decorators(&class.decorator_list);
        let parameters = self.open_type_parameters(class.type_params.as_deref());
        if let Some(arguments) = &class.arguments {
            self.visit_arguments(arguments);
        }
        self.scopes.enter_class(class.name.as_str());
        let found = self.bindings().body(&class.body);
        let own = ["__module__", "__qualname__", "__firstlineno__"].map(|name| self.facts.symbol(name));
        let scope = self.scopes.open(Kind::Class);
        (scope.locals, scope.globals, scope.nonlocals) = (found.locals, found.globals, found.nonlocals);
        scope.locals.extend(own);
        let id = scope.id;
        own.iter().for_each(|symbol| self.facts.flow.bind((id, *symbol)));
        let loops = std::mem::take(&mut self.loops);
        self.block(&class.body);
        self.loops = loops;
        self.scopes.close();
        self.scopes.leave_class();
        self.close_type_parameters(parameters);
        if class.arguments.is_some() || !class.decorator_list.is_empty() {
            self.facts.may_call();
        }
        self.bind_identifier(&class.name);
    }

    /// A collector of the names that a body binds, with mangling as at this place.
    pub(super) fn bindings(&mut self) -> Bindings<'_> {
        Bindings {
            facts: &mut self.facts,
            mangling: Some(&self.scopes),
            found: Scope::unnamed(Kind::Function),
            comprehensions: 0,
        }
    }

    fn open_type_parameters(&mut self, parameters: Option<&TypeParams>) -> bool {
        let Some(parameters) = parameters else { return false };
        let names: Vec<_> = parameters.type_params.iter().map(|one| self.symbol(one.name().as_str())).collect();
        self.scopes.open(Kind::TypeParameters).locals.extend(names);
        for parameter in &parameters.type_params {
            let (bound, default) = match parameter {
                TypeParam::TypeVar(one) => (one.bound.as_deref(), one.default.as_deref()),
                TypeParam::TypeVarTuple(one) => (None, one.default.as_deref()),
                TypeParam::ParamSpec(one) => (None, one.default.as_deref()),
            };
            // Evaluated on request.
            self.later(|walk| bound.iter().chain(&default).for_each(|one| walk.visit_expr(one)));
        }
        true
    }

    fn close_type_parameters(&mut self, open: bool) {
        if open {
            self.scopes.close();
        }
    }

    pub(super) fn pattern(&mut self, pattern: &Pattern) {
        let name = match pattern {
            Pattern::MatchAs(one) => one.name.as_ref(),
            Pattern::MatchStar(one) => one.name.as_ref(),
            Pattern::MatchMapping(one) => one.rest.as_ref(),
            _ => None,
        };
        ruff_python_ast::visitor::walk_pattern(self, pattern);
        if let Some(name) = name {
            if let Some(origins) = self.subjects.last().cloned() {
                let symbol = self.symbol(name.as_str());
                self.derive_name(symbol, &origins, true);
            }
            self.bind_identifier(name);
        }
    }
}
