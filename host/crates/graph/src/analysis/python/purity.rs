//! The proof that a function of a step changes none of its arguments and no variable, as far as its body shows it.
//!
//! A body may change what it makes itself: a list that it fills, a number that it adds to. Everything else that could
//! change a value is an obligation to the graph, or ends the proof. So do bodies with functions, classes, `global`,
//! `yield` and `await` in them, which nobody needs to read twice to doubt.

use super::super::VariableName;
use super::super::facts::Symbol;
use super::super::library::{gives_new_container, gives_scalar};
use super::super::proof::{DottedName, Doubt, Obligation, ValueKind};
use ruff_python_ast::visitor::{Visitor, walk_comprehension, walk_except_handler, walk_expr, walk_pattern, walk_stmt};
use ruff_python_ast::{
    Alias, Comprehension, ExceptHandler, Expr, ExprCall, Parameters, Pattern, Stmt, StmtFunctionDef,
};
use rustc_hash::FxHashSet;
use std::collections::{BTreeMap, BTreeSet};

/// Most obligations of one function; with more, nothing is proved of it.
const NEEDS_MAX: usize = 16;

/// Containers of the library that are made by these names.
const CONTAINERS: [&str; 4] = ["Counter", "OrderedDict", "defaultdict", "deque"];

/// The proof about the function whose body is walked.
#[derive(Default)]
pub(super) struct Draft {
    /// Its variables that hold only what it made itself.
    own: FxHashSet<Symbol>,
    /// Names among them that may hold parts of other values.
    holding: FxHashSet<Symbol>,
    /// Names among them whose parts are augmented in place.
    augmented: FxHashSet<Symbol>,
    needs: Vec<Obligation>,
    is_refused: bool,
}

/// The variables of a function, and what they are bound to.
#[derive(Default)]
pub(super) struct Locals<'a> {
    /// For each name: none when it may hold a value that the function did not make, and true when a value that it made
    /// may hold parts of others.
    pub(super) names: BTreeMap<&'a str, Option<bool>>,
    /// Variables by which builtins and modules are named that made them.
    pub(super) made_with: BTreeSet<&'a str>,
    /// Functions of modules that made them.
    pub(super) makers: Vec<DottedName>,
    /// Its body has something that ends the proof.
    pub(super) is_refused: bool,
}

impl Draft {
    pub(super) fn new(own: FxHashSet<Symbol>, holding: FxHashSet<Symbol>, makers: Vec<DottedName>) -> Self {
        let mut draft = Self { own, holding, ..Self::default() };
        makers.into_iter().for_each(|maker| draft.need(Obligation::Leaves(maker)));
        draft
    }

    /// Ends the proof.
    pub(super) fn refuse(&mut self) {
        self.is_refused = true;
    }

    fn need(&mut self, more: Obligation) {
        if !self.needs.contains(&more) {
            self.needs.push(more);
        }
        self.is_refused |= self.needs.len() > NEEDS_MAX;
    }

    /// A variable of the namespace may be changed in place.
    pub(super) fn change_global(&mut self, name: &VariableName, doubt: &Doubt) {
        match doubt {
            Doubt::None => self.refuse(),
            Doubt::Kind => self.need(Obligation::Inert(name.clone())),
            Doubt::Unless(more) => self.need(more.clone()),
        }
    }

    /// A variable of the function, or a part of its value, may be changed in place.
    pub(super) fn change_local(&mut self, symbol: Symbol, doubt: &Doubt, within: bool) {
        match doubt {
            _ if self.own.contains(&symbol) && !within => {}
            Doubt::Unless(more) => self.need(more.clone()),
            Doubt::None | Doubt::Kind => self.refuse(),
        }
    }

    /// A function is called that the body does not show.
    pub(super) fn call(&mut self, doubt: &Doubt) {
        match doubt {
            Doubt::Unless(more) => self.need(more.clone()),
            Doubt::None | Doubt::Kind => self.refuse(),
        }
    }

    pub(super) fn owns(&self, symbol: Symbol) -> bool {
        self.own.contains(&symbol)
    }

    /// A value that the function did not make becomes part of one of its own.
    pub(super) fn hold(&mut self, symbol: Symbol) {
        self.holding.insert(symbol);
    }

    /// A part of a value is augmented in place.
    pub(super) fn augment(&mut self, symbol: Symbol) {
        self.augmented.insert(symbol);
    }

    /// The kind of the function; none if the proof ended.
    pub(super) fn kind(self) -> Option<ValueKind> {
        let is_proved = !self.is_refused && self.holding.is_disjoint(&self.augmented);
        is_proved.then(|| ValueKind::Function(self.needs.into()))
    }
}

impl<'a> Locals<'a> {
    pub(super) fn of(function: &'a StmtFunctionDef) -> Self {
        let mut locals = Self::default();
        locals.parameters(&function.parameters);
        locals.visit_body(&function.body);
        locals
    }

    fn parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters {
            self.note(parameter.name().as_str(), None);
        }
    }

    fn note(&mut self, name: &'a str, made: Option<bool>) {
        self.names
            .entry(name)
            .and_modify(|known| *known = known.zip(made).map(|(one, other)| one || other))
            .or_insert(made);
    }

    fn target(&mut self, target: &'a Expr, made: Option<bool>) {
        match target {
            Expr::Name(name) => self.note(name.id.as_str(), made),
            Expr::Tuple(one) => one.elts.iter().for_each(|part| self.target(part, None)),
            Expr::List(one) => one.elts.iter().for_each(|part| self.target(part, None)),
            Expr::Starred(one) => self.target(&one.value, None),
            _ => {}
        }
    }

    /// None for a value that the function may not have made, and else whether it may hold parts of others.
    fn made(&mut self, value: &'a Expr) -> Option<bool> {
        match value {
            _ if is_literal(value) => Some(false),
            Expr::UnaryOp(_) | Expr::Compare(_) => Some(false),
            Expr::BinOp(_) | Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) => Some(true),
            Expr::List(one) => Some(!one.elts.iter().all(is_literal)),
            Expr::Set(one) => Some(!one.elts.iter().all(is_literal)),
            Expr::Dict(one) => Some(!one.items.iter().all(|item| item.key.is_some() && is_literal(&item.value))),
            Expr::If(one) => {
                let (body, orelse) = (self.made(&one.body)?, self.made(&one.orelse)?);
                Some(body || orelse)
            }
            Expr::Call(call) => self.made_by(call),
            _ => None,
        }
    }

    fn made_by(&mut self, call: &'a ExprCall) -> Option<bool> {
        let has_arguments = !call.arguments.args.is_empty();
        match &*call.func {
            Expr::Name(name) if gives_new_container(name.id.as_str()) => {
                self.made_with.insert(name.id.as_str());
                Some(has_arguments && !gives_scalar(name.id.as_str()))
            }
            Expr::Name(name) if CONTAINERS.contains(&name.id.as_str()) => {
                self.made_with.insert(name.id.as_str());
                self.makers.push(DottedName::of(name.id.as_str().into()));
                Some(takes_parts(name.id.as_str()) && has_arguments)
            }
            Expr::Attribute(member) if CONTAINERS.contains(&member.attr.as_str()) => {
                let Expr::Name(module) = &*member.value else { return None };
                let path = format!(".{}", member.attr.as_str());
                self.makers.push(DottedName { root: module.id.as_str().into(), path: path.into() });
                self.made_with.insert(module.id.as_str());
                Some(takes_parts(member.attr.as_str()) && has_arguments)
            }
            _ => None,
        }
    }
}

impl<'a> Visitor<'a> for Locals<'a> {
    fn visit_stmt(&mut self, stmt: &'a Stmt) {
        match stmt {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) | Stmt::TypeAlias(_) => {
                self.is_refused = true;
                return;
            }
            Stmt::Global(_) | Stmt::Nonlocal(_) => self.is_refused = true,
            Stmt::Assign(one) => {
                let made = self.made(&one.value);
                one.targets.iter().for_each(|target| self.target(target, made));
            }
            Stmt::AnnAssign(one) => {
                if let Some(value) = &one.value {
                    let made = self.made(value);
                    self.target(&one.target, made);
                }
            }
            Stmt::For(one) => self.target(&one.target, None),
            Stmt::With(one) => {
                for item in &one.items {
                    let is_file = matches!(&item.context_expr, Expr::Call(call) if is_open(call));
                    let made = if is_file { self.made(&item.context_expr) } else { None };
                    item.optional_vars.iter().for_each(|target| self.target(target, made));
                }
            }
            _ => {}
        }
        walk_stmt(self, stmt);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Named(one) => {
                let made = self.made(&one.value);
                self.target(&one.target, made);
            }
            Expr::Lambda(one) => one.parameters.iter().for_each(|parameters| self.parameters(parameters)),
            _ => {}
        }
        walk_expr(self, expr);
    }

    fn visit_comprehension(&mut self, comprehension: &'a Comprehension) {
        self.target(&comprehension.target, None);
        walk_comprehension(self, comprehension);
    }

    fn visit_alias(&mut self, alias: &'a Alias) {
        let name = alias.asname.as_ref().unwrap_or(&alias.name);
        self.note(name.split('.').next().unwrap_or_default(), None);
    }

    fn visit_except_handler(&mut self, handler: &'a ExceptHandler) {
        let ExceptHandler::ExceptHandler(one) = handler;
        one.name.iter().for_each(|name| self.note(name.as_str(), None));
        walk_except_handler(self, handler);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(one) => one.name.as_ref(),
            Pattern::MatchStar(one) => one.name.as_ref(),
            Pattern::MatchMapping(one) => one.rest.as_ref(),
            _ => None,
        };
        name.iter().for_each(|name| self.note(name.as_str(), None));
        walk_pattern(self, pattern);
    }
}

/// True for a container whose parts are those of its argument.
fn takes_parts(container: &str) -> bool {
    matches!(container, "OrderedDict" | "deque")
}

fn is_open(call: &ExprCall) -> bool {
    matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "open")
}

/// True for a number, a text, `None`, `True` or `False`, as a source writes them.
pub(super) fn is_literal(expr: &Expr) -> bool {
    match expr {
        Expr::NumberLiteral(_) | Expr::BooleanLiteral(_) | Expr::NoneLiteral(_) | Expr::EllipsisLiteral(_) => true,
        Expr::UnaryOp(one) => matches!(&*one.operand, Expr::NumberLiteral(_)),
        _ => is_text(expr),
    }
}

/// True for a text or bytes, as a source writes them.
pub(super) fn is_text(expr: &Expr) -> bool {
    matches!(expr, Expr::StringLiteral(_) | Expr::BytesLiteral(_) | Expr::FString(_))
}

/// The arguments of a call whose values its result may share.
pub(super) fn passed_on(call: &ExprCall) -> impl Iterator<Item = &Expr> {
    // A key asks for a value, and is none.
    let is_key = matches!(&*call.func, Expr::Attribute(method) if method.attr.as_str() == "get");
    let arguments = call.arguments.args.iter().skip(usize::from(is_key));
    arguments.chain(call.arguments.keywords.iter().map(|keyword| &keyword.value))
}
