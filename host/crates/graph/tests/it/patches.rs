//! Failures, what is found to be at fault, and the first source to try.

use longhaul_graph::diagnose::{ObservedValue, RaisedFailure, RaisedFrame, diagnose};
use longhaul_graph::patch::{CANDIDATES_MAX, candidates};
use longhaul_graph::{Graph, Python, VariableName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A failure of the last step: its exception, what that says, and values as `name: repr`.
struct Case {
    steps: &'static [&'static str],
    line: u32,
    exception: &'static str,
    message: &'static str,
    values: &'static [(&'static str, &'static str)],
    /// The step at fault, by number.
    culprit: usize,
    /// The first candidate's source.
    patched: &'static str,
}

fn seen(shown: &str) -> ObservedValue {
    // The report of a runner, made from the text alone.
    let keys = shown.strip_prefix('{').and_then(|text| text.strip_suffix('}')).map(|inner| {
        inner.split(", ").filter_map(|item| item.split(": ").next()).map(ToOwned::to_owned).collect::<Vec<_>>()
    });
    let len = shown.starts_with('[').then(|| shown.matches(',').count() as u64 + 1);
    let kind = match shown {
        "None" => "NoneType",
        _ if shown.starts_with('[') => "list",
        _ if shown.starts_with('{') => "dict",
        _ if shown.starts_with('\'') => "str",
        _ if shown.contains('.') => "float",
        _ => "int",
    };
    ObservedValue {
        shown: shown.to_owned(),
        kind: kind.to_owned(),
        keys: keys.unwrap_or_default(),
        len,
        ..ObservedValue::default()
    }
}

fn failed(
    steps: &[&str],
    line: u32,
    exception: &str,
    message: &str,
    values: &[(&str, &str)],
) -> (Graph, RaisedFailure) {
    let mut graph = Graph::new(Arc::new(Python::default()));
    for (number, source) in steps.iter().enumerate() {
        graph.add_step(format!("s{number}").as_str().into(), (*source).to_owned()).expect("added");
    }
    let values: BTreeMap<VariableName, ObservedValue> =
        values.iter().map(|(name, shown)| (VariableName::from(*name), seen(shown))).collect();
    let step = format!("s{}", steps.len() - 1).as_str().into();
    let (exception, message) = (exception.into(), message.into());
    (graph, RaisedFailure { step, exception, message, line: Some(line), frame: None, values })
}

#[track_caller]
fn check(case: &Case) {
    let (graph, failure) = failed(case.steps, case.line, case.exception, case.message, case.values);
    let diagnosis = diagnose(&graph, &failure).expect("known");
    assert_eq!(
        diagnosis.culprit,
        format!("s{}", case.culprit).as_str().into(),
        "{}: {}",
        case.message,
        diagnosis.reason
    );
    let found = candidates(&graph, &failure).expect("known");
    let first = found.first().map_or("nothing", |candidate| candidate.source.as_str());
    assert_eq!(first, case.patched, "{}: of {found:#?}", case.message);
}

#[test]
fn common_failures_have_their_patch_first() {
    let cases = [
        Case {
            steps: &["total = 3", "# totl\nprint(totl, 'totl')"],
            line: 2,
            exception: "NameError",
            message: "name 'totl' is not defined",
            values: &[],
            culprit: 1,
            patched: "# totl\nprint(total, 'totl')",
        },
        Case {
            steps: &["x = 1", "pritn(x)"],
            line: 1,
            exception: "NameError",
            message: "name 'pritn' is not defined",
            values: &[],
            culprit: 1,
            patched: "print(x)",
        },
        Case {
            steps: &["'''doc'''\nfrom __future__ import annotations\nx = math.pi"],
            line: 3,
            exception: "NameError",
            message: "name 'math' is not defined",
            values: &[],
            culprit: 0,
            patched: "'''doc'''\nfrom __future__ import annotations\nimport math\nx = math.pi",
        },
        Case {
            steps: &["d = defaultdict(list)"],
            line: 1,
            exception: "NameError",
            message: "name 'defaultdict' is not defined",
            values: &[],
            culprit: 0,
            patched: "from collections import defaultdict\nd = defaultdict(list)",
        },
        Case {
            steps: &["import jsno\njsno.dumps(1)"],
            line: 1,
            exception: "ModuleNotFoundError",
            message: "No module named 'jsno'",
            values: &[],
            culprit: 0,
            patched: "import json\njson.dumps(1)",
        },
        Case {
            steps: &["from math import sqrtt\nsqrtt(2)"],
            line: 1,
            exception: "ImportError",
            message: "cannot import name 'sqrtt' from 'math' (unknown location)",
            values: &[],
            culprit: 0,
            patched: "from math import sqrt as sqrtt\nsqrtt(2)",
        },
        Case {
            steps: &["n = 0", "def f():\n    n += 1\nf()"],
            line: 2,
            exception: "UnboundLocalError",
            message: "cannot access local variable 'n' where it is not associated with a value",
            values: &[],
            culprit: 1,
            patched: "def f():\n    global n\n    n += 1\nf()",
        },
        Case {
            steps: &["row = {'name': 1, 'age': 2}", "print(row['nmae'])"],
            line: 1,
            exception: "KeyError",
            message: "'nmae'",
            values: &[("row", "{'name': 1, 'age': 2}")],
            culprit: 1,
            patched: "print(row['name'])",
        },
        Case {
            steps: &["row = {1: 1, 2: 2}", "k = '1'\nprint(row[k])"],
            line: 2,
            exception: "KeyError",
            message: "'1'",
            values: &[("row", "{1: 1, 2: 2}")],
            culprit: 1,
            patched: "k = '1'\nprint(row[int(k)])",
        },
        Case {
            steps: &["xs = [1, 2]", "print(xs[2])"],
            line: 1,
            exception: "IndexError",
            message: "list index out of range",
            values: &[("xs", "[1, 2]")],
            culprit: 1,
            patched: "print(xs[1])",
        },
        Case {
            steps: &["xs = [1, 2]", "print(xs[len(xs)])"],
            line: 1,
            exception: "IndexError",
            message: "list index out of range",
            values: &[("xs", "[1, 2]")],
            culprit: 1,
            patched: "print(xs[len(xs) - 1])",
        },
        Case {
            steps: &["xs = [1, 2]", "for i in range(len(xs) + 1):\n    print(xs[i])"],
            line: 2,
            exception: "IndexError",
            message: "list index out of range",
            values: &[],
            culprit: 1,
            patched: "for i in range(len(xs)):\n    print(xs[i])",
        },
        Case {
            steps: &["xs = [1, 2]", "for i in range(len(xs)):\n    print(xs[i] - xs[i + 1])"],
            line: 2,
            exception: "IndexError",
            message: "list index out of range",
            values: &[],
            culprit: 1,
            patched: "for i in range(len(xs) - 1):\n    print(xs[i] - xs[i + 1])",
        },
        Case {
            steps: &["n = 3", "print('n: ' + n)"],
            line: 1,
            exception: "TypeError",
            message: "can only concatenate str (not \"int\") to str",
            values: &[("n", "3")],
            culprit: 1,
            patched: "print('n: ' + str(n))",
        },
        Case {
            steps: &["price = '3'", "total = price + 1"],
            line: 1,
            exception: "TypeError",
            message: "can only concatenate str (not \"int\") to str",
            values: &[("price", "'3'")],
            culprit: 1,
            patched: "total = int(price) + 1",
        },
        Case {
            steps: &["price = '2.5'", "total = 2 - price"],
            line: 1,
            exception: "TypeError",
            message: "unsupported operand type(s) for -: 'int' and 'str'",
            values: &[("price", "'2.5'")],
            culprit: 1,
            patched: "total = 2 - float(price)",
        },
        Case {
            steps: &["age = '30'", "if age > 18: print(1)"],
            line: 1,
            exception: "TypeError",
            message: "'>' not supported between instances of 'str' and 'int'",
            values: &[("age", "'30'")],
            culprit: 1,
            patched: "if int(age) > 18: print(1)",
        },
        Case {
            steps: &["xs = [1, 2]", "print(', '.join(xs))"],
            line: 1,
            exception: "TypeError",
            message: "sequence item 0: expected str instance, int found",
            values: &[("xs", "[1, 2]")],
            culprit: 1,
            patched: "print(', '.join(map(str, xs)))",
        },
        Case {
            steps: &["n = 3", "for i in n: print(i)"],
            line: 1,
            exception: "TypeError",
            message: "'int' object is not iterable",
            values: &[("n", "3")],
            culprit: 1,
            patched: "for i in range(n): print(i)",
        },
        Case {
            steps: &["xs = [1, 2]", "print(xs[len(xs) / 2])"],
            line: 1,
            exception: "TypeError",
            message: "list indices must be integers or slices, not float",
            values: &[("xs", "[1, 2]")],
            culprit: 1,
            patched: "print(xs[len(xs) // 2])",
        },
        Case {
            steps: &["t = '3.5'", "n = int(t)"],
            line: 1,
            exception: "ValueError",
            message: "invalid literal for int() with base 10: '3.5'",
            values: &[],
            culprit: 1,
            patched: "n = int(float(t))",
        },
        Case {
            steps: &["t = '1,234'", "n = int(t)"],
            line: 1,
            exception: "ValueError",
            message: "invalid literal for int() with base 10: '1,234'",
            values: &[],
            culprit: 1,
            patched: "n = int(t.replace(',', ''))",
        },
        Case {
            steps: &["t = '$3.50'", "n = float(t)"],
            line: 1,
            exception: "ValueError",
            message: "could not convert string to float: '$3.50'",
            values: &[],
            culprit: 1,
            patched: "n = float(t.strip().strip('$€£%'))",
        },
        Case {
            steps: &["s = 'a'", "print(s.uper())"],
            line: 1,
            exception: "AttributeError",
            message: "'str' object has no attribute 'uper'",
            values: &[("s", "'a'")],
            culprit: 1,
            patched: "print(s.upper())",
        },
        Case {
            steps: &["xs = []", "xs.push(1)"],
            line: 1,
            exception: "AttributeError",
            message: "'list' object has no attribute 'push'",
            values: &[],
            culprit: 1,
            patched: "xs.append(1)",
        },
        Case {
            steps: &["xs = [1, 2]", "print(xs.length)"],
            line: 1,
            exception: "AttributeError",
            message: "'list' object has no attribute 'length'",
            values: &[],
            culprit: 1,
            patched: "print(len(xs))",
        },
        Case {
            steps: &["import math", "print(math.sqrtt(2))"],
            line: 1,
            exception: "AttributeError",
            message: "module 'math' has no attribute 'sqrtt'",
            values: &[],
            culprit: 1,
            patched: "print(math.sqrt(2))",
        },
        Case {
            steps: &["xs = [2, 1]", "ys = xs.sort(reverse=True)", "print(ys[0])"],
            line: 1,
            exception: "TypeError",
            message: "'NoneType' object is not subscriptable",
            values: &[("ys", "None")],
            culprit: 1,
            patched: "ys = sorted(xs, reverse=True)",
        },
        Case {
            steps: &["xs = [1]", "xs = xs.append(2)", "print(len(xs))"],
            line: 1,
            exception: "TypeError",
            message: "object of type 'NoneType' has no len()",
            values: &[("xs", "None")],
            culprit: 1,
            patched: "xs.append(2)",
        },
    ];
    for case in &cases {
        check(case);
    }
}

#[test]
fn a_key_of_the_parts_of_a_value_is_tried_wherever_the_wrong_one_stands() {
    let rows = ObservedValue {
        kind: "list".to_owned(),
        columns: vec!["'price'".to_owned(), "'name'".to_owned()],
        part_kind: "Row".to_owned(),
        part_attributes: vec!["total".to_owned()],
        ..ObservedValue::default()
    };
    let first = |source: &str, exception: &str, message: &str| {
        let (graph, mut failure) = failed(&["rows = load()", source], 1, exception, message, &[]);
        failure.values.insert("rows".into(), rows.clone());
        candidates(&graph, &failure)
            .expect("known")
            .first()
            .map(|candidate| candidate.source.clone())
            .unwrap_or_default()
    };
    for (source, exception, message, patched) in [
        ("s = sum(row['pirce'] for row in rows)", "KeyError", "'pirce'", "s = sum(row['price'] for row in rows)"),
        ("s = rows[0]['pirce']", "KeyError", "'pirce'", "s = rows[0]['price']"),
        (
            "c = 'pirce'\ns = [row[c] for row in rows]",
            "KeyError",
            "'pirce'",
            "c = 'price'\ns = [row[c] for row in rows]",
        ),
        (
            "s = [row.totl for row in rows]",
            "AttributeError",
            "'Row' object has no attribute 'totl'",
            "s = [row.total for row in rows]",
        ),
        (
            "s = [row.pirce for row in rows]",
            "AttributeError",
            "'dict' object has no attribute 'pirce'",
            "s = [row['price'] for row in rows]",
        ),
        (
            "s = [row.price for row in rows]",
            "AttributeError",
            "'dict' object has no attribute 'price'",
            "s = [row['price'] for row in rows]",
        ),
    ] {
        assert_eq!(first(source, exception, message), patched, "of {source}");
    }
}

#[test]
fn a_failure_in_a_function_of_another_step_is_blamed_on_that_step_and_mended_there() {
    let function = "def price(row):\n    return row['pirce']";
    let steps = ["rows = [{'price': 1}]", function, "total = price(rows[0])"];
    let (graph, mut failure) = failed(&steps, 1, "KeyError", "'pirce'", &[("rows", "[{'price': 1}]")]);
    if let Some(rows) = failure.values.get_mut("rows") {
        rows.columns = vec!["'price'".to_owned()];
    }
    let frame = RaisedFrame { step: "s1".into(), line: 2, function: "price".to_owned() };
    failure.frame = Some(frame.clone());
    let diagnosis = diagnose(&graph, &failure).expect("known");
    let expected = "in `price`, which `s2` calls, it asks for a key that is not there";
    assert_eq!((diagnosis.culprit.as_str(), diagnosis.reason.as_str()), ("s1", expected));
    let found = candidates(&graph, &failure).expect("known");
    let first = found.first().expect("a candidate");
    assert_eq!((first.step.as_str(), &*first.source), ("s1", "def price(row):\n    return row['price']"));
    // A step that is gone is nobody's fault.
    failure.frame = Some(RaisedFrame { step: "gone".into(), ..frame });
    assert_eq!(diagnose(&graph, &failure).expect("known").culprit.as_str(), "s2");
    assert!(candidates(&graph, &failure).expect("known").is_empty());
}

#[test]
fn a_name_that_a_failed_step_would_define_is_blamed_on_that_step() {
    let (mut graph, failure) =
        failed(&["rows = load()", "print(rows)"], 1, "NameError", "name 'rows' is not defined", &[]);
    let observed = longhaul_graph::Observed { failed: true, ..Default::default() };
    graph.observe(&"s0".into(), &observed).expect("known");
    let diagnosis = diagnose(&graph, &failure).expect("known");
    assert_eq!(
        (diagnosis.culprit.as_str(), diagnosis.reason.as_str()),
        ("s0", "it would define `rows`, and raised before")
    );
    let rows = diagnosis.variables.iter().find(|one| &*one.name == "rows").expect("involved");
    assert_eq!(rows.producers, ["s0".into()]);
}

#[test]
fn a_failure_that_no_rule_knows_has_no_candidates_and_is_told() {
    for (exception, message) in [
        ("ZeroDivisionError", "division by zero"),
        ("KeyError", "'x'"),
        ("", ""),
        ("NameError", "'"),
        ("TypeError", "?"),
    ] {
        let (graph, failure) = failed(&["x = 1 / 0"], 1, exception, message, &[]);
        assert!(candidates(&graph, &failure).expect("known").is_empty(), "{exception}");
        assert!(!diagnose(&graph, &failure).expect("known").reason.is_empty());
    }
}

#[test]
fn hostile_failures_end_in_bounded_answers() {
    let source = (0..2_000).map(|number| format!("value{number} = valeu{number} + xs[{number}]\n")).collect::<String>();
    for (exception, message) in [
        ("NameError", format!("name '{}' is not defined", "valeu7")),
        ("NameError", format!("name '{}' is not defined", "v".repeat(1_000_000))),
        ("IndexError", "é".repeat(1_000_000)),
        ("KeyError", "'\\".repeat(100_000)),
    ] {
        let (graph, mut failure) = failed(&["value = 1", &source], 7, exception, &message, &[]);
        failure.line = Some(u32::MAX);
        assert!(candidates(&graph, &failure).expect("known").len() <= CANDIDATES_MAX);
        diagnose(&graph, &failure).expect("known");
    }
    let (graph, failure) = failed(&["x = ("], 1, "SyntaxError", "'(' was never closed", &[]);
    assert!(candidates(&graph, &failure).expect("known").is_empty());
    assert!(diagnose(&graph, &failure).expect("known").reason.contains("does not parse"));
}
