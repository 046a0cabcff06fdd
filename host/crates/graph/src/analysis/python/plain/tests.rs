//! Sources that are read plainly, held against the parser.

use super::super::super::{Analysis, Mode, SyntaxError};
use super::super::{Walk, with_module};
use super::{BRACKETS_MAX, NAMED_MAX, OPERATORS_MAX, analysis};
use serde_json::Value;
use std::path::PathBuf;

#[path = "../../../../tests/it/random.rs"]
mod random;

use random::{Random, count, first_seed};

/// Pieces of sources, of which most soups are no Python.
#[rustfmt::skip]
const TOKENS: &[&str] = &[
    "a", "b", "c", "f", "len", "print", "exec", "dir", "key", "__x", "_", "é", "ﬁ", "match", "case", "type", "and",
    "or", "not", "in", "is", "if", "else", "for", "lambda", "await", "yield", "pass", "import", "from", "as", "del",
    "None", "True", "__debug__", "global", "return", "async", "print ", "1", "0", "07", "0x1F", "0xg", "1_0", "1__0",
    "1.5", ".5", "1.", "1e5", "1e", "2j", "1_", "'s'", "\"s\"", "''", "'''l\n'''", "'\\n'", "'é'", "f'{a}'", "b''",
    "'", "\"\"\"", "+", "-", "*", "**", "/", "//", "%", "@", "<<", ">>", "&", "|", "^", "~", "<", ">", "<=", ">=",
    "==", "!=", "<>", "->", ":=", "=", "+=", "-=", "**=", "//=", "<<=", "@=", "(", ")", "[", "]", "{", "}", ",", ":",
    ".", "...", ";", "!", "$", "?", "`", "\\", "\\\n", "\n", "\n", "\n ", "\r\n", "\r", "\t", "\x0c", "\0", "# c",
    "#\n", " ", " ", " ", "  ", "\u{feff}", "from m import ", "import ", "f(", "a.b", "a[0]", "k=", " = ", " = ",
    "(a, b)",
];

/// Statements and expressions, in which capital letters stand for what is drawn; and some that are not plain.
#[rustfmt::skip]
const STATEMENTS: &[&str] = &[
    "V = E", "V = E", "V = V = E", "N = N = E", "V, V = E, E", "N, = E", "V O= E", "V O= E", "E", "E", "E, E",
    "E;V = E;", "pass", "import N", "import N.b as N, N", "from m.n import N as N, N", "from N import (N,\n  N as N)",
    "# N", "V = E  # N", "", "  ",
];

#[rustfmt::skip]
const ODD_STATEMENTS: &[&str] = &[
    "del N", "N: E = E", "(V) = E", "[V, V] = E", "*N, V = E", "from m import *", "from .m import N", "if E: V = E",
    "for N in E: E", "assert E", "type N = E", "match E:\n case N: E", "from __future__ import N", "E = E",
    "def N(N=E): E", "return E", "global N",
];

const VALUES: &[&str] = &["N", "N", "N", "N.a", "N[E]", "N.a[E].b", "N(E).a", "N[E:E, E]", "N . a", "E.a", "(N)[E]"];

#[rustfmt::skip]
const EXPRESSIONS: &[&str] = &[
    "N", "N", "N", "N", "1", "0x1F", "1_000.5e-3", "'t'", "'t' \"u\"", "'''t\nu'''", "None", "True", "N.a", "N[E]",
    "E.a", "E[E]", "E(E)", "N(E, E)", "N(E, k=E)", "N.m(E, key=E, k=E)", "N()", "N(\n  E,\n  # c\n  E,\n)",
    "N.a.m(E)", "E + E", "E B E", "E B E", "E < E == E", "E and E", "E or E", "E and E or E", "not E", "-E",
    "- E ** -E", "E in E", "E not in E", "E is not E", "[E, E]", "[]", "(E, E)", "(E,)", "()", "{E, E}",
    "{E: E, 'k': E}", "{}", "(E)", "N[E:E]", "N[:, E:]", "N[::E]", "N[E,]", "exec(E)", "eval(E, N)", "globals()",
    "dir()", "vars(E)", "locals( )", "len(E)", "max(E, key=E)", "sorted(E, key=N)", "str.lower(E)",
];

#[rustfmt::skip]
const ODD_EXPRESSIONS: &[&str] = &[
    "(E if E else E)", "lambda: E", "[E for N in E]", "f'{N}'", "N(*E)", "N(**E)", "(N := E)", "N(k=E, k=E)",
    "N(k=E, E)", "await E", "...", "E.1", "N(E for N in E)", "N 'x'", "1.a", "b'x'", "1 .a",
];

const NAMES: &[&str] = &["a", "a", "b", "c", "d", "len", "print", "f", "list", "__p", "exec", "dir", "match_"];

const ODD_NAMES: &[&str] = &["match", "case", "type", "é", "None", "in", "__debug__"];

const OPERATORS: &[&str] = &["+", "-", "*", "/", "//", "%", "@", "<<", ">>", "&", "|", "^", "**"];

fn parsed(source: &str, mode: Mode) -> Result<Analysis, SyntaxError> {
    with_module(source, move |source, module| Walk::new(mode).module(source, module))?
}

/// Whether the source is read plainly; then the parser has to say the same.
#[track_caller]
fn check(source: &str, told: impl Fn() -> String) -> bool {
    let mut plain = false;
    for mode in [Mode::Sound, Mode::Precise] {
        if let Some(found) = analysis(source, mode) {
            assert_eq!(Ok(found), parsed(source, mode), "{} of {source:?}", told());
            plain = true;
        }
    }
    plain
}

fn soup(random: &mut Random) -> String {
    (0..=random.below(12)).map(|_| random.pick(TOKENS)).collect()
}

fn filled(random: &mut Random, template: &str, depth: usize) -> String {
    let mut text = String::new();
    for letter in template.chars() {
        match letter {
            'N' => text.push_str(drawn(random, NAMES, ODD_NAMES)),
            'B' | 'O' => text.push_str(random.pick(OPERATORS)),
            'E' | 'V' if depth > 2 => text.push_str(random.pick(NAMES)),
            'E' => {
                let template = drawn(random, EXPRESSIONS, ODD_EXPRESSIONS);
                text.push_str(&filled(random, template, depth + 1));
            }
            'V' => {
                let template = random.pick(VALUES);
                text.push_str(&filled(random, template, depth + 1));
            }
            other => text.push(other),
        }
    }
    text
}

fn drawn<'t>(random: &mut Random, plain: &[&'t str], odd: &[&'t str]) -> &'t str {
    let from = if random.below(60) == 0 { odd } else { plain };
    random.pick(from)
}

/// A few statements, in half of them with a character or a token too many or too few, or another.
fn near(random: &mut Random) -> String {
    let ends = ["\n", "\n", "\n", "\n\n", "; ", "\r\n", " \n"];
    let mut source = String::new();
    for _ in 0..=random.below(4) {
        let template = drawn(random, STATEMENTS, ODD_STATEMENTS);
        source.push_str(&filled(random, template, 0));
        source.push_str(random.pick(&ends));
    }
    for _ in 0..random.below(2) * (1 + random.below(3)) {
        let at = source.floor_char_boundary(random.below(source.len()));
        let next = source.ceil_char_boundary(at + 1);
        let piece = source[at..next].to_owned();
        match random.below(4) {
            0 => drop(source.drain(at..next)),
            1 => source.insert_str(at, &piece),
            2 => source.insert_str(at, random.pick(TOKENS)),
            _ => source.replace_range(at..next, random.pick(TOKENS)),
        }
        if source.is_empty() {
            break;
        }
    }
    source
}

/// `LONGHAUL_PLAIN` says how many sources of each kind, `LONGHAUL_SEED` where to begin.
#[test]
fn what_is_read_plainly_is_what_the_parser_reads() {
    let (first, mut plain) = (first_seed("LONGHAUL_SEED"), [0, 0]);
    let sources = count("LONGHAUL_PLAIN", 20_000);
    for seed in first..first + sources as u64 {
        let mut random = Random::new(seed);
        let told = || format!("LONGHAUL_SEED={seed}:");
        plain[0] += usize::from(check(&soup(&mut random), told));
        plain[1] += usize::from(check(&near(&mut random), told));
    }
    eprintln!("{} of {sources} soups and {} of {sources} programs are plain, from seed {first}", plain[0], plain[1]);
    assert!(plain[0] * 100 > sources && plain[1] * 5 > sources, "{plain:?} of {sources} each are plain");
}

/// Every text of the suites that may be a source, and the cells of the benchmark's notebook.
#[test]
fn the_sources_of_the_cases_are_read_as_the_parser_reads_them() {
    let directory = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("a readable directory").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let file: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON");
            if file["suite"].as_str().is_some_and(|suite| suite.starts_with("esg_")) {
                texts(&file["cases"], &mut sources);
            }
        }
    }
    let cells = include_str!("../../../../benches/graph.rs").split('"').map(ToOwned::to_owned);
    sources.extend(cells.chain(["v7 = v6 + 1", "b7 = a * 7", "v0 = 1"].map(ToOwned::to_owned)));
    let plain = sources.iter().filter(|source| check(source, || "a source".into())).count();
    assert!(plain > 50, "{plain} of {} texts are plain", sources.len());
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

/// Steps as agents write them. All but the last few are to be read plainly.
const EVERYDAY: &[&str] = &[
    "import pandas as pd\nimport numpy as np\nfrom pathlib import Path",
    "from sklearn.model_selection import (\n    train_test_split,\n    cross_val_score,\n)",
    "df = pd.read_csv('orders.csv', sep=';', parse_dates=['date'])",
    "df.head()",
    "df = df.dropna(subset=['price', 'count']).reset_index(drop=True)",
    "df['total'] = df['price'] * df['count'] * (1 - df['discount'].fillna(0.0))",
    "df.loc[df['total'] < 0, 'total'] = 0",
    "df.columns = [\"a\", \"b\", \"c\"]",
    "by_city = (\n    df.groupby('city')['total']\n    .sum()  # in euros\n    .sort_values(ascending=False)\n)",
    "best = by_city.index[0]\nprint('best city:', best, by_city.iloc[:10])",
    "x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, random_state=42)",
    "model = RandomForestClassifier(n_estimators=1_000, max_depth=None)\nmodel.fit(x_train, y_train)",
    "score = model.score(x_test, y_test)\nscore > 0.9 and not np.isnan(score)",
    "settings = {'rate': 1e-3, 'layers': [64, 64], 'names': ('a', 'b'), 'seen': {1, 2}}",
    "totals[city] += row['total']\ncount -= 1",
    "a = b = c = 0",
    "with_tax = round(sum(prices) * 1.19, 2)",
    "ordered = sorted(rows, key=itemgetter('price'), reverse=True)",
    "response = requests.get(url, headers={'Accept': 'application/json'}, timeout=30)\ndata = response.json()",
    "text = \"\"\"Dear customer,\nyour order is on its way.\n\"\"\"",
    "mask = (df.a > 1) & ~df.b.isin([1, 2]) | (df.c == 'x')",
    "matrix = np.zeros((3, 4))\nmatrix[1:, ::2] = -1\nshape = matrix.T @ matrix",
    "plt.figure(figsize=(8, 4)); plt.plot(x, y, label='total'); plt.legend()",
    "# Only a note.\n\nx = 0x1F",
    "squares = [n * n for n in numbers]",
    "print(f'{total:.2f}')",
    "label = 'high' if total > 10 else 'low'",
    "for row in rows:\n    print(row)",
    "def twice(n):\n    return 2 * n",
    "by_name = df.apply(lambda row: row['name'], axis=1)",
];

/// Of [`EVERYDAY`], those with a comprehension, a formatted string, a condition, a block or a `lambda`.
const NOT_PLAIN: usize = 6;

#[test]
fn everyday_steps_are_read_plainly() {
    let (plain, rest) = EVERYDAY.split_at(EVERYDAY.len() - NOT_PLAIN);
    for source in plain {
        assert!(check(source, || "a step".into()), "not read plainly:\n{source}");
    }
    for source in rest {
        assert!(!check(source, || "a step".into()), "this is read plainly by now: say so here\n{source}");
    }
}

#[test]
fn what_is_too_deep_or_too_long_is_left_to_the_parser() {
    let brackets = |count: usize| format!("x = {}a{}", "(".repeat(count), ")".repeat(count));
    let operators = |count: usize| format!("x = a{}", " + a".repeat(count));
    let unary = |count: usize| format!("x = {}a", "-".repeat(count));
    let named = |count: usize| format!("f({})", (0..count).map(|at| format!("k{at}=1, ")).collect::<String>());
    let told = || "a cap".to_owned();
    for (source, most) in [
        (&brackets as &dyn Fn(usize) -> String, BRACKETS_MAX),
        (&operators, OPERATORS_MAX),
        (&unary, OPERATORS_MAX),
        (&named, NAMED_MAX),
    ] {
        assert!(check(&source(most), told), "{most} are read plainly");
        assert!(!check(&source(most + 1), told), "one more than {most} are not");
    }
    // A million bytes take the time of one pass, wherever they end.
    for (source, plain) in [
        ("x = [".to_owned() + &"a, ".repeat(300_000) + "]", true),
        ("a = ".repeat(200_000) + "1", true),
        ("x = '".to_owned() + &"a".repeat(900_000), false),
        ("a, ".repeat(300_000) + "\nif", false),
        ("a".repeat(990_000), true),
        ("(".repeat(990_000), false),
        ("f(".repeat(400_000), false),
        ("'a' ".repeat(240_000), true),
        ("x = 1\n".repeat(150_000), true),
    ] {
        assert_eq!(analysis(&source, Mode::Sound).is_some(), plain, "{}...", &source[..20]);
    }
}
