//! What the analysis of JavaScript finds, source by source.

use longhaul_graph::{Graph, JavaScript, Language, Mode, StepId};
use std::sync::Arc;

/// `reads / writes / certain`.
fn found(source: &str) -> String {
    match (JavaScript { mode: Mode::Precise }).analyse(source) {
        Ok(found) => {
            let list = |names: Vec<&str>| names.join(" ");
            let reads = list(found.reads().map(|name| &**name).collect());
            let writes = list(found.writes().map(|name| &**name).collect());
            let certain = list(found.definite_writes().map(|name| &**name).collect());
            format!("{reads} / {writes} / {certain}")
        }
        Err(error) => format!("error at {}:{}", error.line, error.column),
    }
}

#[track_caller]
fn check(table: &[(&str, &str)]) {
    for (source, expected) in table {
        assert_eq!(found(source), *expected, "of\n{source}");
    }
}

#[test]
fn declarations_bind_where_their_kind_says() {
    check(&[
        ("let x = y;", "y / x / x"),
        ("const {a, b: c, ...d} = e, [f = g, , h] = i;", "e g i / a c d f h / a c d f h"),
        ("{ let x = 1; const y = x; var z = y; }", " / z / z"),
        ("var x; y = x;", "x / y / y"),
        ("let x; y = x;", " / x y / x y"),
        ("x = 1; { let x = 2; x = 3; }", " / x / x"),
        ("for (let i = 0; i < n; i++) s += i;", "n s / s / "),
        ("for (const [k, v] of xs) m[k] = v;", "m xs /  / "),
        ("for (var i in o) {}", "o / i / "),
        ("import a, {b as c} from 'm'; import * as d from 'n'; use(a, c, d);", "use / a c d / a c d"),
        ("export const x = y; export {x}; export default function f() {}", "y / f x / f x"),
    ]);
}

#[test]
fn functions_and_classes_are_hoisted_and_read_later() {
    check(&[
        ("f(); function f() { return k; }", "k / f / f"),
        ("function f() { return k; } const k = 1; f();", " / f k / f k"),
        ("const f = (a, {b = d}) => a + b + c;", "c d / f / f"),
        ("function f() { x = 1; var y = 2; return arguments; }", " / f x / f"),
        ("class A extends B { #p = q; m() { return r; } static s = t; [u]() {} }", "B q r t u / A / A"),
        ("(function g() { return g; })();", " /  / "),
        ("try { f(); } catch ({message}) { m = message; } finally { n = 1; }", "f / m n / n"),
    ]);
}

#[test]
fn only_what_every_path_binds_is_certain_in_javascript() {
    check(&[
        ("if (c) x = 1; else x = 2; y = x;", "c / x y / x y"),
        ("if (c) x = 1; y = x;", "c x / x y / y"),
        ("a && (b = 1); c = b;", "a b / b c / c"),
        ("x ??= y;", "x y / x / "),
        ("x++;", "x / x / x"),
        ("switch (a) { case 1: x = 1; break; default: x = 2; }", "a / x / "),
        ("l: { x = 1; break l; }", " / x / "),
        ("`${a} ${`${b}`}`; c.d = e; typeof f;", "a b c e f /  / "),
    ]);
}

#[test]
fn values_that_may_change_have_their_reasons_in_javascript() {
    let found = JavaScript::default()
        .analyse("xs.push(a); o.p = 1; delete q.r; f(b, {c}); console.log(d); Object.assign(e, g);");
    let found = found.expect("it parses");
    let names: Vec<&str> = found.mutates().map(|name| &**name).collect();
    assert_eq!(names, ["a", "b", "c", "e", "g", "o", "q", "xs"]);
    assert!(JavaScript::default().analyse("eval(s)").expect("it parses").sees_all().is_some());
    assert!(JavaScript::default().analyse("globalThis.x = 1").expect("it parses").sees_all().is_some());
}

#[test]
fn javascript_that_does_not_parse_has_its_place() {
    check(&[("let x = ;", "error at 1:7"), ("f(", "error at 1:1"), ("return 1", "error at 1:1")]);
}

#[test]
fn hostile_javascript_ends_in_an_answer() {
    for source in [
        "(".repeat(100_000),
        format!("x = {}1{};", "[".repeat(5_000), "]".repeat(5_000)),
        format!("x = a{};", "+a".repeat(50_000)),
        format!("x = a{};", ".b".repeat(9_000)),
        "if(a){}else ".repeat(3_000) + "{}",
        "\0".repeat(1_000),
        "x = 1;".repeat(166_666),
        "function f(){".repeat(20_000),
    ] {
        let _ = JavaScript::default().analyse(&source);
    }
    let long = JavaScript::default().analyse(&" ".repeat(1_000_001)).expect_err("it is too long");
    assert!(long.message.contains("1000000"), "{long}");
}

#[test]
fn a_graph_of_javascript_knows_what_a_change_touches() {
    let mut graph = Graph::new(Arc::new(JavaScript::default()));
    for (id, source) in [
        ("a", "const rows = [1, 2];"),
        ("b", "let total = 0; for (const r of rows) total += r;"),
        ("c", "const other = 1;"),
        ("d", "console.log(total, other);"),
    ] {
        graph.add_step(id.into(), source.to_owned()).expect("added");
    }
    let stale = graph.change_step(&"a".into(), "const rows = [3];".to_owned()).expect("changed");
    assert_eq!(stale, ["a", "b", "d"].map(StepId::from));
}
