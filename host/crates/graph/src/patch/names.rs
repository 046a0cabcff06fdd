//! Rules for names: of variables, modules and attributes.

use super::calls::{every_key, unquoted};
use super::proposal::{Edit, Facts, Proposal};
use super::sites::Sites;
use crate::analysis::python_builtins;
use crate::similar_names::{ALIASES, CALLED_OTHERWISE, MEMBERS, METHODS, MODULES, closest};
use ruff_python_ast::visitor::Visitor;
use ruff_python_ast::{Alias, Expr, ExprAttribute, ExprContext, Stmt, StmtFunctionDef, StmtImportFrom};
use std::collections::BTreeSet;

/// A `NameError`: another name was meant, or an import is missing.
pub(super) fn missing_name(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let Some(name) = facts.failure.missing_name() else { return Vec::new() };
    let mut found = Vec::new();
    let bound = bound_here(sites);
    let known: BTreeSet<&str> =
        facts.known.iter().map(|name| &**name).chain(bound.iter().map(String::as_str)).collect();
    for (rank, near) in closest(name, known.iter().copied()).into_iter().enumerate() {
        let reason = format!("no step defines `{name}`, and `{near}` is near");
        found.push(Proposal::new(rank, "name-typo", renamed(sites, name, near), reason));
    }
    for (rank, near) in closest(name, python_builtins().iter().copied()).into_iter().enumerate() {
        let reason = format!("no step defines `{name}`, and the builtin `{near}` is near");
        found.push(Proposal::new(rank + 1, "name-typo", renamed(sites, name, near), reason));
    }
    for (rank, line) in imports_of(name).into_iter().enumerate() {
        let reason = format!("no step imports `{name}`");
        found.push(Proposal::new(rank, "missing-import", vec![sites.add_line(&line)], reason));
    }
    found
}

/// Import statements that would define a name.
fn imports_of(name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if MODULES.contains(&name) {
        lines.push(format!("import {name}"));
    }
    lines.extend(ALIASES.iter().filter(|(alias, _)| *alias == name).map(|(_, line)| (*line).to_owned()));
    let members = MEMBERS.iter().filter(|(member, _)| *member == name);
    lines.extend(members.map(|(member, module)| format!("from {module} import {member}")));
    lines
}

/// Renames every read of the name to the other.
fn renamed(sites: &Sites<'_>, name: &str, other: &str) -> Vec<Edit> {
    let loads = sites.all.iter().filter_map(|expr| match expr {
        Expr::Name(one) if one.ctx == ExprContext::Load && one.id.as_str() == name => Some(one.range),
        _ => None,
    });
    loads.map(|range| Edit::replace(range, other)).collect()
}

/// Names that the source itself binds, in whichever scope.
fn bound_here(sites: &Sites<'_>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for expr in &sites.all {
        if let Expr::Name(one) = expr
            && one.ctx == ExprContext::Store
        {
            names.insert(one.id.to_string());
        }
    }
    for stmt in &sites.every {
        match stmt {
            Stmt::FunctionDef(one) => {
                names.insert(one.name.to_string());
                names.extend(one.parameters.iter().map(|parameter| parameter.name().to_string()));
            }
            Stmt::ClassDef(one) => {
                names.insert(one.name.to_string());
            }
            Stmt::Import(one) => names.extend(one.names.iter().map(imported)),
            Stmt::ImportFrom(one) => names.extend(one.names.iter().map(imported)),
            _ => {}
        }
    }
    names
}

fn imported(alias: &Alias) -> String {
    let name = alias.asname.as_ref().unwrap_or(&alias.name);
    name.split('.').next().unwrap_or_default().to_owned()
}

/// An `UnboundLocalError`: the function assigns to a name that should be the global one.
pub(super) fn unbound_local(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let Some(name) = facts.failure.missing_name() else { return Vec::new() };
    let assigns = |function: &StmtFunctionDef| {
        let mut stores = Stores { name, found: false };
        stores.visit_body(&function.body);
        stores.found
    };
    let mut found = Vec::new();
    for stmt in &sites.statements {
        if let Stmt::FunctionDef(function) = stmt
            && assigns(function)
            && let Some(first) = function.body.first()
        {
            let at = ruff_text_size::Ranged::range(first).start().to_usize();
            let line = sites.source[..at].rfind('\n').map_or(0, |end| end + 1);
            let indent = &sites.source[line..at];
            // A body on the line of its `def` takes another statement before a semicolon.
            let text = match indent.trim().is_empty() {
                true => format!("global {name}\n{indent}"),
                false => format!("global {name}; "),
            };
            let reason = format!("`{}` assigns to `{name}`, which makes it a local of its own", function.name);
            found.push(Proposal::new(0, "missing-global", vec![Edit::insert(at, text)], reason));
        }
    }
    // The innermost function comes last.
    found.reverse();
    found
}

struct Stores<'n> {
    name: &'n str,
    found: bool,
}

impl<'a> Visitor<'a> for Stores<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(one) => self.found |= one.ctx == ExprContext::Store && one.id.as_str() == self.name,
            _ => ruff_python_ast::visitor::walk_expr(self, expr),
        }
    }
}

/// An import of a missing module or member: another one was meant.
pub(super) fn missing_module(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let Some(wrong) = facts.failure.quoted(0) else { return Vec::new() };
    let mut found = Vec::new();
    for stmt in &sites.every {
        match stmt {
            Stmt::Import(one) => one.names.iter().for_each(|alias| module_of_alias(alias, wrong, sites, &mut found)),
            Stmt::ImportFrom(one) => imported_from(one, wrong, &mut found),
            _ => {}
        }
    }
    found
}

fn module_of_alias(alias: &Alias, wrong: &str, sites: &Sites<'_>, found: &mut Vec<Proposal>) {
    if alias.name.as_str() != wrong {
        return;
    }
    for (rank, near) in closest(wrong, MODULES.iter().copied()).into_iter().enumerate() {
        let mut edits = vec![Edit::replace(alias.name.range, near)];
        if alias.asname.is_none() {
            edits.extend(renamed(sites, wrong, near));
        }
        found.push(Proposal::new(
            rank,
            "module-typo",
            edits,
            format!("there is no module `{wrong}`; `{near}` is near"),
        ));
    }
}

fn imported_from(one: &StmtImportFrom, wrong: &str, found: &mut Vec<Proposal>) {
    let Some(module) = &one.module else { return };
    if module.as_str() == wrong {
        for (rank, near) in closest(wrong, MODULES.iter().copied()).into_iter().enumerate() {
            let reason = format!("there is no module `{wrong}`; `{near}` is near");
            found.push(Proposal::new(rank, "module-typo", vec![Edit::replace(module.range, near)], reason));
        }
    }
    for alias in one.names.iter().filter(|alias| alias.name.as_str() == wrong) {
        let members = MEMBERS.iter().filter(|(_, from)| *from == module.as_str()).map(|(member, _)| *member);
        for (rank, near) in closest(wrong, members).into_iter().enumerate() {
            let kept = if alias.asname.is_none() { format!("{near} as {wrong}") } else { near.to_owned() };
            let reason = format!("`{module}` has no `{wrong}`; `{near}` is near");
            found.push(Proposal::new(rank, "member-typo", vec![Edit::replace(alias.name.range, kept)], reason));
        }
        for (_, from) in MEMBERS.iter().filter(|(member, from)| *member == wrong && *from != module.as_str()) {
            let reason = format!("`{wrong}` is a member of `{from}`");
            found.push(Proposal::new(1, "member-elsewhere", vec![Edit::replace(module.range, *from)], reason));
        }
    }
}

/// An `AttributeError`: another attribute was meant.
pub(super) fn missing_attribute(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let message = facts.failure.told();
    let at = if message.starts_with("partially initialized") { None } else { facts.failure.quoted(1) };
    let (Some(kind), Some(wrong)) = (facts.failure.quoted(0), at) else { return Vec::new() };
    let mut found = Vec::new();
    for expr in &sites.expressions {
        match expr {
            Expr::Attribute(one) if one.attr.as_str() == wrong => attribute(sites, facts, kind, one, &mut found),
            _ => {}
        }
    }
    found
}

fn attribute(sites: &Sites<'_>, facts: &Facts, kind: &str, one: &ExprAttribute, found: &mut Vec<Proposal>) {
    let wrong = one.attr.as_str();
    let why = |near: &str| format!("`{kind}` has no `{wrong}`; `{near}` is what it has");
    for (_, _, right) in CALLED_OTHERWISE.iter().filter(|(of, there, _)| *of == kind && *there == wrong) {
        found.push(Proposal::new(0, "attribute-typo", vec![Edit::replace(one.attr.range, *right)], why(right)));
    }
    if matches!(wrong, "length" | "size" | "len") && METHODS.iter().any(|(of, _)| *of == kind) {
        let called = sites
            .all
            .iter()
            .find(|expr| matches!(expr, Expr::Call(call) if ruff_text_size::Ranged::range(&*call.func) == one.range));
        let range = called.map_or(one.range, |call| ruff_text_size::Ranged::range(*call));
        let edit = Edit::replace(range, format!("len({})", sites.text(&*one.value)));
        found.push(Proposal::new(0, "attribute-typo", vec![edit], why("len")));
    }
    let own = METHODS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, methods)| methods);
    let of_module = MEMBERS.iter().filter(|(_, module)| *module == kind).map(|(member, _)| *member);
    let values = || facts.failure.values.values();
    let of_value = match &*one.value {
        Expr::Name(name) => facts.failure.values.get(name.id.as_str()),
        _ => None,
    };
    // A variable of a function, or a part of a value, is known by its type.
    let of_kind = values().filter(|seen| seen.kind == kind).chain(of_value);
    let of_parts = values().filter(|seen| seen.part_kind == kind).flat_map(|seen| &seen.part_attributes);
    let of_value = of_kind.flat_map(|seen| &seen.attributes).chain(of_parts).map(String::as_str);
    let known: BTreeSet<&str> = own.iter().copied().chain(of_module).chain(of_value).collect();
    for (rank, near) in closest(wrong, known.iter().copied()).into_iter().enumerate() {
        found.push(Proposal::new(rank + 1, "attribute-typo", vec![Edit::replace(one.attr.range, near)], why(near)));
    }
    if kind == "dict" {
        item_of_dict(sites, facts, one, found);
    }
}

/// `row.price`, where `row` is a dictionary with such a key, or one that is near.
fn item_of_dict(sites: &Sites<'_>, facts: &Facts, one: &ExprAttribute, found: &mut Vec<Proposal>) {
    let (wrong, keys) = (one.attr.as_str(), every_key(facts));
    let texts: Vec<&str> = keys.iter().filter_map(|key| unquoted(key)).collect();
    let same = texts.iter().copied().filter(|key| *key == wrong);
    for (rank, key) in same.chain(closest(wrong, texts.iter().copied())).enumerate() {
        let edit = Edit::replace(one.range, format!("{}['{key}']", sites.text(&*one.value)));
        let reason = format!("a dictionary has items and no attributes; '{key}' is a key");
        found.push(Proposal::new(rank, "attribute-of-dict", vec![edit], reason));
    }
}
