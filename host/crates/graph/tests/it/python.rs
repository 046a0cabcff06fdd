//! The findings of the analysis of Python, source by source.

use longhaul_graph::{Analysis, AnalysisMode, Python, Settled, StepLanguage};

/// `reads / writes / certain`, each a list of names in order; certain are the definite writes.
fn found(source: &str, mode: AnalysisMode) -> String {
    match (Python { mode }).analyse(source) {
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
        assert_eq!(found(source, AnalysisMode::Precise), *expected, "of\n{source}");
    }
}

fn sound(source: &str) -> Analysis {
    Python::default().analyse(source).unwrap_or_else(|error| panic!("{source}: {error}"))
}

#[test]
fn functions_read_their_free_names_when_they_are_called() {
    check(&[
        ("def f(): return k", "k / f / f"),
        ("k = 1\ndef f(): return k", " / f k / f k"),
        ("def f(): return k\nk = 1", " / f k / f k"),
        ("def f(): return k\nf()\nk = 1", "k / f k / f k"),
        ("def f(): return k\nif c: k = 1", "c k / f k / f"),
        ("def f(a, b=d, *c, e=g, **h): return a + b + c + e + h", "d g / f / f"),
        ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = y\n    return x", "y / f / f"),
        ("def f():\n    global g\n    g = 1", " / f g / f"),
        ("def f():\n    for i in xs: pass\n    return i", "xs / f / f"),
        ("@deco(arg)\ndef f(a: T) -> R: pass", "R T arg deco / f / f"),
        (
            "def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n > 0 and even(n - 1)",
            " / even odd / even odd",
        ),
        ("f = lambda a, b=c: a + b + d", "c d / f / f"),
        ("async def f():\n    async with a as b:\n        async for c in d: yield c", "a d / f / f"),
        ("def f():\n    import os\n    from m import n\n    return os, n", " / f / f"),
        ("def f():\n    try: pass\n    except E as e: print(e)", "E / f / f"),
        ("def f(): del x", " / f / f"),
    ]);
}

#[test]
fn classes_run_at_once_and_their_methods_do_not_see_their_names() {
    check(&[
        ("class C:\n    a = 1\n    b = a", " / C / C"),
        ("class C:\n    b = a\n    a = 1", "a / C / C"),
        ("class C:\n    a = 1\n    def m(self): return a", "a / C / C"),
        ("class C:\n    if x: a = 1\n    b = a", "a x / C / C"),
        ("class C:\n    xs = ys\n    zs = [x for x in xs]\n    ws = [xs for x in ys]", "xs ys / C / C"),
        ("class C:\n    global g\n    g = 1", " / C g / C g"),
        ("class C:\n    def m(self): return self.__x + __y", "_C__y / C / C"),
        ("class C:\n    def m(self): return super().m(), __class__", " / C / C"),
        ("class C(B, metaclass=M): pass", "B M / C / C"),
        ("class C[T](B[T]):\n    a: T", "B / C / C"),
        ("def f[T: Bound](x: T) -> T: return x", "Bound / f / f"),
        ("type A[T] = list[T] | B", "B / A / A"),
        ("type A = A | None", " / A / A"),
    ]);
}

#[test]
fn comprehensions_keep_their_targets_and_give_away_what_walrus_binds() {
    check(&[
        ("[x for x in xs if x > n]", "n xs /  / "),
        ("{k: v for k, v in kv}", "kv /  / "),
        ("[y := x for x in xs]", "xs / y / "),
        ("[[a for a in b] for b in c]", "c /  / "),
        ("[x for x in x]", "x /  / "),
        ("[b for a in as_ for b in a]", "as_ /  / "),
        ("a and (b := 1)\nc = b", "a b / b c / c"),
        ("(b := 1) and a\nc = b", "a / b c / b c"),
        ("x = (y := f(y))", "f y / x y / x y"),
        ("1 < (a := b) < (c := d)", "b d / a c / a"),
        ("lambda: (y := 1)", " /  / "),
    ]);
}

#[test]
fn only_what_every_path_binds_is_certain() {
    check(&[
        ("if a: x = 1\nelif b: x = 2\nelse: x = 3\ny = x", "a b / x y / x y"),
        ("if a: x = 1\nelif b: x = 2\ny = x", "a b x / x y / y"),
        ("if a: x = 1\nelse: raise E\ny = x", "E a / x y / x y"),
        ("for i in xs: a = i\nelse: b = 1\nc = a, b", "a xs / a b c i / b c"),
        ("for i in xs:\n    if i: break\nelse: b = 1\nc = b", "b xs / b c i / c"),
        ("while c:\n    a = 1\n    continue\nb = a", "a c / a b / b"),
        ("try: a = f()\nexcept E: a = 1\nb = a", "E f / a b / a b"),
        ("try: a = f()\nexcept E: pass\nb = a", "E a f / a b / b"),
        ("try: f()\nexcept E: raise\nelse: a = 1\nb = a", "E f / a b / a b"),
        ("try: a = f()\nfinally: b = a", "a f / a b / a b"),
        ("try: a = 1\nexcept E as e: a = e\nb = e", "E e / a b e / a b"),
        ("try: pass\nexcept* E as e: print(e)", "E / e / "),
        ("match x:\n    case 1: a = 1\n    case _: a = 2\nb = a", "x / a b / a b"),
        (
            "match x:\n    case [a, *b] if c: pass\n    case {'k': d, **e}: pass\n    case P(f, g=h) | P(h, g=f): pass",
            "P c x / a b d e f h / ",
        ),
        ("x: int\ny = x", "x / y / y"),
        ("x: int = 1\ny = x", " / x y / x y"),
        ("assert (a := b), (c := d)", "b d / a c / a"),
        ("import a.b, c.d as e\nfrom f import g as h, i", " / a e h i / a e h i"),
        ("from __future__ import annotations", " / annotations / annotations"),
    ]);
}

#[test]
fn a_deleted_name_is_read_and_hides_what_was_before() {
    check(&[("del x", "x /  / "), ("x = 1\ndel x\ny = x", " / x y / y"), ("del x, (y, z)", "x y z /  / ")]);
    let deleted = sound("if c: x = 1\nelse: del x");
    assert_eq!(deleted.deletes().collect::<Vec<_>>(), [&"x".into()]);
    assert_eq!(deleted.of("x").map(|known| known.settled), Some(Some(Settled::Either)));
    assert!(sound("del d['a'], o.b").mutates().any(|name| &**name == "d"));
    assert!(sound("try: pass\nexcept E as e: pass").deletes().any(|name| &**name == "e"));
}

#[test]
fn formatted_strings_are_looked_into() {
    check(&[
        ("f'{x!r:>{w}} {\"a\" + f\"{y}\"}'", "w x y /  / "),
        ("t'{x}'", "x /  / "),
        ("f'{(z := 1)}'\na = z", " / a z / a z"),
        ("'a' f'{b}' 'c'", "b /  / "),
    ]);
}

#[test]
fn builtins_are_told_apart_and_kept() {
    let found = sound("print(len(x))");
    assert_eq!(found.reads().map(|name| &**name).collect::<Vec<_>>(), ["x"]);
    assert_eq!(found.builtins().map(|name| &**name).collect::<Vec<_>>(), ["len", "print"]);
}

#[test]
fn the_sound_mode_says_why_a_value_may_change() {
    let table = [
        ("xs.append(1)", "xs: method `append` is called"),
        ("a.b[0].c(d)", "a: method `c` is called, d: given to `c`"),
        (
            "f(x, [y], *z, k=(v, {'a': w}))",
            "v: given to `f`, w: given to `f`, x: given to `f`, y: given to `f`, z: given to `f`",
        ),
        ("f(a + b, len(c), lambda: d)", ""),
        ("print(x, len(y), sorted(z))", ""),
        ("xs += [1]", "xs: an augmented assignment"),
        ("d['a'] += 1", "d: an item is stored"),
        ("o.a = 1", "o: an attribute is stored"),
        ("next(it)", "it: given to `next`"),
        ("map(int, xs)\nmap(f, ys)\nstr.lower(x)", "f: given to `map`, x: given to `lower`, ys: given to `map`"),
        ("with lock: pass", "lock: method `__enter__` is called"),
        ("def f(o):\n    o.x = 1\n    g.append(o)", "g: method `append` is called"),
        ("for a.b in xs: pass", "a: an attribute is stored"),
    ];
    for (source, expected) in table {
        let found = sound(source);
        let mutated =
            found.names().iter().filter_map(|known| Some(format!("{}: {}", known.name, known.mutated.as_ref()?)));
        let shown: Vec<String> = mutated.collect();
        assert_eq!(shown.join(", "), expected, "of\n{source}");
    }
}

#[test]
fn in_the_sound_mode_a_context_manager_may_swallow_what_its_body_raises() {
    assert_eq!(found("with c: x = 1\ny = x", AnalysisMode::Sound), "c x / x y / y");
    assert_eq!(found("with c: x = 1\ny = x", AnalysisMode::Precise), "c / x y / x y");
    assert_eq!(found("with open(p) as f: x = f.read()\ny = x", AnalysisMode::Sound), "p / f x y / f x y");
}

#[test]
fn sources_that_may_see_every_name_say_why() {
    let why = |source: &str| sound(source).sees_all().map(ToString::to_string);
    assert_eq!(why("from m import *").as_deref(), Some("`from m import *`"));
    assert_eq!(why("exec(code)").as_deref(), Some("`exec` runs text"));
    assert_eq!(why("def f(): return globals()").as_deref(), Some("`globals` gives the namespace"));
    assert_eq!(why("dir()").as_deref(), Some("`dir` gives the namespace"));
    assert_eq!(why("dir(x), vars(y)"), None);
    assert_eq!(why("def f(): return locals()"), None);
    assert_eq!(why("def exec(x): pass\nexec(1)"), None);
}

#[test]
fn a_syntax_error_has_its_line_and_column() {
    let table = [
        ("x = 1\ny = = 2", (2, 5)),
        ("ä = (", (1, 6)),
        ("x = '\0'", (1, 6)),
        ("return 1", (1, 1)),
        ("if x:\n    break", (2, 5)),
        ("yield 1", (1, 1)),
        ("nonlocal x", (1, 1)),
        ("class C:\n    return 1", (2, 5)),
        ("if x:\n\tpass\n        pass", (3, 1)),
    ];
    for (source, place) in table {
        let error = Python::default().analyse(source).expect_err(source);
        assert_eq!((error.line, error.column), place, "of\n{source}\n{error}");
    }
}

#[test]
fn the_place_of_a_read_is_its_first() {
    let found = sound("a = 1\r\nb = (é +\r\n  x) + x\r\n");
    let place = |name: &str| found.of(name).and_then(|known| known.read).map(|span| (span.line, span.column));
    assert_eq!((place("x"), place("é")), (Some((3, 3)), Some((2, 6))));
}

#[test]
fn marks_line_ends_and_form_feeds_change_nothing() {
    for source in
        ["\u{feff}x = y\n", "x = y\r\n", "x = y\r", "\x0cx = y", "x = \\\n  y", "# -*- coding: latin-1 -*-\nx = y"]
    {
        assert_eq!(found(source, AnalysisMode::Sound), "y / x / x", "of {source:?}");
    }
    assert_eq!(found("ﬁ = x\ny = fi", AnalysisMode::Sound), "x / fi y / fi y");
}
