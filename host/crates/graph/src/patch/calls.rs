//! Rules for keys, items, types and forms of values.

use super::proposal::{Edit, Facts, Proposal};
use super::sites::Sites;
use crate::diagnose::ObservedValue;
use crate::similar_names::closest;
use ruff_python_ast::{CmpOp, Expr, ExprCall, ExprCompare, ExprSubscript, Number, Operator, Stmt, StmtAssign};
use ruff_text_size::Ranged;
use std::collections::BTreeSet;

/// The rank of a change at another place than the one that failed.
const FAR_RANK: usize = 4;

/// A `KeyError`: a similar key exists, or one of another type.
pub(super) fn missing_key(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let (wrong, every) = (facts.failure.told(), every_key(facts));
    let mut found = Vec::new();
    for expr in &sites.expressions {
        let (base, key) = match expr {
            Expr::Subscript(one) => (&*one.value, &*one.slice),
            Expr::Call(call) if matches!(&*call.func, Expr::Attribute(one) if one.attr.as_str() == "pop") => {
                let (Expr::Attribute(method), Some(key)) = (&*call.func, call.arguments.args.first()) else { continue };
                (&*method.value, key)
            }
            _ => continue,
        };
        // The keys of the value and its parts, or those of all values if nothing is known of this one.
        let own = seen(facts, base).map(|seen| [seen.keys.as_slice(), &seen.columns].concat()).unwrap_or_default();
        other_key(sites, key, wrong, if own.is_empty() { &every } else { &own }, &mut found);
    }
    // The key may stand elsewhere, as in `column = "pirce"`.
    let Some(text) = unquoted(wrong) else { return found };
    for expr in &sites.all {
        if matches!(expr, Expr::StringLiteral(one) if one.value.to_str() == text) {
            near_keys(expr, wrong, text, &every, FAR_RANK, &mut found);
        }
    }
    found
}

/// The keys that any value is known to have, or any part of one.
pub(super) fn every_key(facts: &Facts) -> Vec<String> {
    let keys = facts.failure.values.values().flat_map(|seen| seen.keys.iter().chain(&seen.columns));
    keys.cloned().collect::<BTreeSet<_>>().into_iter().collect()
}

fn other_key(sites: &Sites<'_>, key: &Expr, wrong: &str, keys: &[String], found: &mut Vec<Proposal>) {
    let text = |repr: &str| unquoted(repr).map(ToOwned::to_owned);
    let literal = matches!(key, Expr::StringLiteral(_) | Expr::NumberLiteral(_));
    let Some(wrong_text) = text(wrong) else {
        // The number exists as a text key.
        if keys.iter().any(|key| unquoted(key) == Some(wrong)) {
            let edit = if literal { Edit::replace(key.range(), format!("'{wrong}'")) } else { sites.wrap(key, "str") };
            found.push(Proposal::new(
                0,
                "key-type",
                vec![edit],
                format!("the keys are texts, and {wrong} is a number"),
            ));
        }
        return;
    };
    if keys.contains(&wrong_text) {
        let edit = if literal { Edit::replace(key.range(), wrong_text) } else { sites.wrap(key, "int") };
        found.push(Proposal::new(0, "key-type", vec![edit], format!("the keys are numbers, and {wrong} is a text")));
        return;
    }
    if !matches!(key, Expr::StringLiteral(one) if one.value.to_str() == wrong_text) {
        return;
    }
    near_keys(key, wrong, &wrong_text, keys, 0, found);
}

/// A text becomes each of the keys that are near.
fn near_keys(key: &Expr, wrong: &str, text: &str, keys: &[String], first: usize, found: &mut Vec<Proposal>) {
    let known: Vec<&str> = keys.iter().filter_map(|key| unquoted(key)).collect();
    let spaces = known.iter().copied().filter(|key| key.trim() == text.trim() && *key != text);
    let near: Vec<&str> = spaces.chain(closest(text, known.iter().copied())).collect();
    for (rank, near) in near.into_iter().enumerate() {
        let Some(repr) = keys.iter().find(|repr| unquoted(repr) == Some(near)) else { continue };
        let reason = format!("there is no key {wrong}; {repr} is near");
        found.push(Proposal::new(first + rank, "key-typo", vec![Edit::replace(key.range(), repr)], reason));
    }
}

/// The text of a `repr` of a text without escapes.
pub(super) fn unquoted(repr: &str) -> Option<&str> {
    let quote = repr.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let inner = repr.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(['\\', quote])).then_some(inner)
}

/// An `IndexError`: the index is one past the end.
pub(super) fn past_the_end(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let mut found = Vec::new();
    for expr in &sites.expressions {
        if let Expr::Subscript(one) = expr {
            item_past_the_end(sites, facts, one, &mut found);
        }
    }
    for expr in &sites.all {
        match expr {
            Expr::Call(call) if named(&call.func, "range") => range_too_long(sites, call, &mut found),
            Expr::Compare(one) => bound_too_far(one, sites, &mut found),
            _ => {}
        }
    }
    found
}

fn item_past_the_end(sites: &Sites<'_>, facts: &Facts, one: &ExprSubscript, found: &mut Vec<Proposal>) {
    if is_len(&one.slice) {
        let edit = Edit::insert(one.slice.end().to_usize(), " - 1");
        found.push(Proposal::new(0, "off-by-one", vec![edit], "the last item is one before the length"));
    }
    let Some(index) = number(&one.slice) else {
        // The next item of each: the loop must end one earlier.
        if matches!(&*one.slice, Expr::BinOp(sum) if sum.op == Operator::Add && number(&sum.right) == Some(1)) {
            let ranges = sites.all.iter().filter_map(|expr| match expr {
                Expr::Call(call) if named(&call.func, "range") => {
                    call.arguments.args.iter().find(|argument| is_len(argument))
                }
                _ => None,
            });
            for length in ranges {
                let edit = Edit::insert(length.end().to_usize(), " - 1");
                let reason = format!("`{}` asks for the item after the last", sites.text(&*one.slice));
                found.push(Proposal::new(0, "off-by-one", vec![edit], reason));
            }
        }
        return;
    };
    match seen(facts, &one.value).and_then(|seen| seen.len) {
        Some(length) if length > 0 && index >= length => {
            let edit = Edit::replace(one.slice.range(), (length - 1).to_string());
            let reason = format!("there are {length} items, the last is {}", length - 1);
            found.push(Proposal::new(0, "off-by-one", vec![edit], reason));
        }
        None if index > 0 => {
            let edit = Edit::replace(one.slice.range(), (index - 1).to_string());
            found.push(Proposal::new(2, "off-by-one", vec![edit], "items are counted from 0"));
        }
        _ => {}
    }
}

/// `range(len(x) + 1)` and `range(1, len(x) + 1)`.
fn range_too_long(sites: &Sites<'_>, call: &ExprCall, found: &mut Vec<Proposal>) {
    for argument in &call.arguments.args {
        if let Expr::BinOp(sum) = argument
            && sum.op == Operator::Add
            && is_len(&sum.left)
            && number(&sum.right) == Some(1)
        {
            let edit = Edit::replace(argument.range(), sites.text(&*sum.left));
            found.push(Proposal::new(0, "off-by-one", vec![edit], "the loop goes one past the end"));
        }
    }
}

/// `i <= len(x)`.
fn bound_too_far(one: &ExprCompare, sites: &Sites<'_>, found: &mut Vec<Proposal>) {
    if let ([CmpOp::LtE], [length]) = (&*one.ops, &*one.comparators)
        && is_len(length)
    {
        let (left, right) = (sites.text(&*one.left), sites.text(length));
        let edit = Edit::replace(one.range, format!("{left} < {right}"));
        found.push(Proposal::new(1, "off-by-one", vec![edit], "the last item is one before the length"));
    }
}

/// A `TypeError`: a value has to be converted.
pub(super) fn wrong_type(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let message = facts.failure.told();
    let mut found = Vec::new();
    if message.contains("expected str instance") {
        joined(sites, &mut found);
    } else if message.contains("object is not iterable") || message.contains("cannot be interpreted as an integer") {
        counted(sites, facts, &mut found);
    } else if message.contains("indices must be integers") {
        indexed(sites, facts, &mut found);
    } else if message.contains("can't multiply sequence") {
        operands(sites, facts, Operator::Mult, &mut found);
    } else if message.contains("concatenate") || message.contains("unsupported operand type") {
        for operator in [Operator::Add, Operator::Sub, Operator::Mult, Operator::Div, Operator::Mod, Operator::FloorDiv]
        {
            operands(sites, facts, operator, &mut found);
        }
    } else if message.contains("not supported between instances") {
        compared(sites, facts, &mut found);
    }
    found
}

/// `", ".join(numbers)`.
fn joined(sites: &Sites<'_>, found: &mut Vec<Proposal>) {
    for expr in &sites.expressions {
        if let Expr::Call(call) = expr
            && matches!(&*call.func, Expr::Attribute(one) if one.attr.as_str() == "join")
            && let [items] = &*call.arguments.args
        {
            let edit = Edit::replace(items.range(), format!("map(str, {})", sites.text(items)));
            found.push(Proposal::new(0, "conversion", vec![edit], "`join` takes texts"));
        }
    }
}

/// `for i in 3`, `range("3")`.
fn counted(sites: &Sites<'_>, facts: &Facts, found: &mut Vec<Proposal>) {
    for stmt in &sites.statements {
        if let Stmt::For(one) = stmt
            && (number(&one.iter).is_some() || kind(facts, &one.iter) == Some("int"))
        {
            let reason = "a number is no list of numbers; `range` is";
            found.push(Proposal::new(0, "conversion", vec![sites.wrap(&one.iter, "range")], reason));
        }
    }
    for expr in &sites.expressions {
        if let Expr::Call(call) = expr
            && named(&call.func, "range")
        {
            for argument in call.arguments.args.iter().filter(|argument| kind(facts, argument) != Some("int")) {
                if number(argument).is_none() {
                    let reason = "`range` takes whole numbers";
                    found.push(Proposal::new(0, "conversion", vec![sites.wrap(argument, "int")], reason));
                }
            }
        }
    }
}

/// `items["1"]`, `items[1.0]`.
fn indexed(sites: &Sites<'_>, facts: &Facts, found: &mut Vec<Proposal>) {
    for expr in &sites.expressions {
        if let Expr::Subscript(one) = expr
            && !matches!(&*one.slice, Expr::Slice(_))
            && number(&one.slice).is_none()
            && kind(facts, &one.slice) != Some("int")
        {
            let edit = match &*one.slice {
                Expr::BinOp(division) if division.op == Operator::Div => {
                    let (left, right) = (sites.text(&*division.left), sites.text(&*division.right));
                    Edit::replace(one.slice.range(), format!("{left} // {right}"))
                }
                _ => sites.wrap(&one.slice, "int"),
            };
            found.push(Proposal::new(0, "conversion", vec![edit], "items are counted with whole numbers"));
        }
    }
}

/// `"a" + 1`, `"3" * 2.0`, `1 - "1"`.
fn operands(sites: &Sites<'_>, facts: &Facts, operator: Operator, found: &mut Vec<Proposal>) {
    for expr in &sites.expressions {
        let (left, right) = match expr {
            Expr::BinOp(one) if one.op == operator => (&*one.left, &*one.right),
            _ => continue,
        };
        sides(sites, facts, left, right, operator == Operator::Add, found);
    }
    for stmt in &sites.statements {
        if let Stmt::AugAssign(one) = stmt
            && one.op == operator
        {
            // Only the right side can be converted in place.
            for side in conversions(facts, &one.value, kind(facts, &one.target), operator == Operator::Add) {
                let reason =
                    format!("`{}` has another type than `{}`", sites.text(&*one.value), sites.text(&*one.target));
                found.push(Proposal::new(side.0, "conversion", vec![sites.wrap(&one.value, side.1)], reason));
            }
        }
    }
}

fn compared(sites: &Sites<'_>, facts: &Facts, found: &mut Vec<Proposal>) {
    for expr in &sites.expressions {
        if let Expr::Compare(one) = expr
            && let [right] = &*one.comparators
        {
            sides(sites, facts, &one.left, right, false, found);
        }
    }
}

/// Converts one of two sides to the type of the other.
fn sides(sites: &Sites<'_>, facts: &Facts, left: &Expr, right: &Expr, texts: bool, found: &mut Vec<Proposal>) {
    let (left_kind, right_kind) = (kind(facts, left), kind(facts, right));
    if left_kind.is_some() && left_kind == right_kind {
        return;
    }
    for (expr, other, other_kind) in [(left, right, right_kind), (right, left, left_kind)] {
        for (rank, function) in conversions(facts, expr, other_kind, texts) {
            let reason = format!("`{}` has another type than `{}`", sites.text(expr), sites.text(other));
            found.push(Proposal::new(rank, "conversion", vec![sites.wrap(expr, function)], reason));
        }
    }
}

/// The conversions that an operand may need beside an operand of the other type, with their ranks.
fn conversions(facts: &Facts, expr: &Expr, other: Option<&str>, texts: bool) -> Vec<(usize, &'static str)> {
    let value = match expr {
        Expr::StringLiteral(one) => Some(one.value.to_str().to_owned()),
        _ => seen(facts, expr).and_then(|seen| unquoted(&seen.shown).map(ToOwned::to_owned)),
    };
    let numeric = value.as_deref().map(|text| (text.trim().parse::<i64>().is_ok(), text.trim().parse::<f64>().is_ok()));
    match (kind(facts, expr), other) {
        (Some("str"), Some("str")) => Vec::new(),
        // A text that holds a number more likely lacks a conversion.
        (Some("str"), _) => match numeric {
            Some((true, _)) => vec![(0, "int"), (2, "float")],
            Some((false, true)) => vec![(0, "float")],
            Some((false, false)) => Vec::new(),
            None => vec![(2, "int"), (3, "float")],
        },
        (Some(_), Some("str")) if texts => vec![(1, "str")],
        (None, Some("str")) if texts => vec![(1, "str")],
        (None, Some("int" | "float")) => vec![(1, "int"), (2, "float")],
        _ => Vec::new(),
    }
}

/// A `ValueError` of a conversion: the text has another form.
pub(super) fn wrong_form(sites: &Sites<'_>, facts: &Facts) -> Vec<Proposal> {
    let message = facts.failure.told();
    let converts = match message {
        _ if message.starts_with("invalid literal for int()") => "int",
        _ if message.starts_with("could not convert string to float") => "float",
        _ => return Vec::new(),
    };
    let Some(text) = facts.failure.quoted(0) else { return Vec::new() };
    let mut found = Vec::new();
    for expr in &sites.expressions {
        if let Expr::Call(call) = expr
            && named(&call.func, converts)
            && let [argument] = &*call.arguments.args
        {
            other_form(sites, argument, text, converts, &mut found);
        }
    }
    found
}

fn other_form(sites: &Sites<'_>, argument: &Expr, text: &str, converts: &str, found: &mut Vec<Proposal>) {
    let shown = sites.text(argument);
    let mut propose = |rank, replacement: String, reason: String| {
        found.push(Proposal::new(rank, "conversion", vec![Edit::replace(argument.range(), replacement)], reason));
    };
    let number = |text: &str| text.trim().parse::<f64>().is_ok();
    if converts == "int" && number(text) {
        propose(0, format!("float({shown})"), format!("'{text}' is no whole number"));
    }
    let (thousands, decimal) = (text.replace(',', ""), text.replace(',', "."));
    let inner = |call: &str| if converts == "int" && call.contains('.') { "float" } else { "" };
    for (rank, wanted, arguments) in [(0, thousands, "',', ''"), (1, decimal, "',', '.'")] {
        if text.contains(',') && number(&wanted) {
            let replaced = format!("{}.replace({arguments})", receiver(argument, shown));
            let replaced = match inner(&wanted) {
                "" => replaced,
                function => format!("{function}({replaced})"),
            };
            propose(rank, replaced, format!("'{text}' is written with a comma"));
        }
    }
    let signs: &[char] = &['$', '€', '£', '%'];
    if text.trim().trim_matches(signs) != text.trim() && number(text.trim().trim_matches(signs)) {
        let stripped = format!("{}.strip().strip('$€£%')", receiver(argument, shown));
        propose(0, stripped, format!("'{text}' has a sign beside its number"));
    }
}

/// An expression in a form that can have a method call.
fn receiver(argument: &Expr, shown: &str) -> String {
    match argument {
        Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_) | Expr::StringLiteral(_) => {
            shown.to_owned()
        }
        _ => format!("({shown})"),
    }
}

/// `x = items.sort()`, in the step that left `None` in `x`.
pub(super) fn none_kept(sites: &Sites<'_>, variable: &str) -> Vec<Proposal> {
    let mut found = Vec::new();
    for stmt in &sites.every {
        if let Stmt::Assign(assign) = stmt
            && matches!(&*assign.targets, [Expr::Name(name)] if name.id.as_str() == variable)
        {
            method_kept(sites, assign, variable, &mut found);
        }
    }
    found
}

fn method_kept(sites: &Sites<'_>, assign: &StmtAssign, variable: &str, found: &mut Vec<Proposal>) {
    let Expr::Call(call) = &*assign.value else { return };
    let Expr::Attribute(method) = &*call.func else { return };
    let (base, name) = (sites.text(&*method.value), method.attr.as_str());
    let reason = format!("`{name}` changes `{base}` and answers `None`");
    let whole = |text: String| vec![Edit::replace(call.range(), text)];
    match name {
        "sort" => {
            let arguments = sites.text(&call.arguments);
            let inner = arguments.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or_default();
            let separator = if inner.trim().is_empty() { "" } else { ", " };
            found.push(Proposal::new(0, "none-kept", whole(format!("sorted({base}{separator}{inner})")), reason));
        }
        "reverse" => found.push(Proposal::new(0, "none-kept", whole(format!("list(reversed({base}))")), reason)),
        "append" | "extend" | "insert" | "remove" | "clear" | "add" | "discard" | "update" if base == variable => {
            let edit = Edit::replace(assign.range, sites.text(call));
            found.push(Proposal::new(0, "none-kept", vec![edit], reason));
        }
        _ => {}
    }
}

fn seen<'f>(facts: &'f Facts, expr: &Expr) -> Option<&'f ObservedValue> {
    match expr {
        Expr::Name(name) => facts.failure.values.get(name.id.as_str()),
        _ => None,
    }
}

/// The type of an expression, if it is obvious.
fn kind<'f>(facts: &'f Facts, expr: &Expr) -> Option<&'f str> {
    match expr {
        Expr::StringLiteral(_) | Expr::FString(_) => Some("str"),
        Expr::NumberLiteral(one) => Some(if matches!(one.value, Number::Int(_)) { "int" } else { "float" }),
        Expr::Call(call) => ["str", "int", "float", "len"]
            .into_iter()
            .find(|name| named(&call.func, name))
            .map(|name| if name == "len" { "int" } else { name }),
        Expr::BinOp(one) if one.op == Operator::Div => Some("float"),
        Expr::BinOp(one) => kind(facts, &one.left).or_else(|| kind(facts, &one.right)),
        _ => {
            let seen = seen(facts, expr)?;
            match seen.kind.as_str() {
                "" if unquoted(&seen.shown).is_some() => Some("str"),
                "" if seen.shown.parse::<i64>().is_ok() => Some("int"),
                "" if seen.shown.parse::<f64>().is_ok() => Some("float"),
                "" => None,
                kind => Some(kind),
            }
        }
    }
}

fn named(function: &Expr, name: &str) -> bool {
    matches!(function, Expr::Name(one) if one.id.as_str() == name)
}

fn is_len(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(call) if named(&call.func, "len"))
}

fn number(expr: &Expr) -> Option<u64> {
    match expr {
        Expr::NumberLiteral(one) => match &one.value {
            Number::Int(int) => int.as_u64(),
            _ => None,
        },
        _ => None,
    }
}
