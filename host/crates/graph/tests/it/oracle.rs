//! Programs drawn at random, with Python's own `symtable` as the judge of which names are the module's.
//!
//! The judge knows scopes and not paths: what it calls read or bound at the module's level, or global in a function, is
//! what the analysis must find among reads, builtins and names that the source binds first.
//!
//! A second judge runs each program among values that take any operation, and notes which names it looked up before it
//! had bound them, and which it had bound at its end.

use crate::random::{Random, count, first_seed};
use longhaul_graph::{AnalysisMode, Python, StepLanguage};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// For each source on a line of JSON, the names that are read from the module and bound there, and those that a
/// class may read from there because it has not bound them yet; or null.
const JUDGE: &str = r#"
import json, sys, symtable
def walk(table, reads, binds, maybe, top):
    for symbol in table.get_symbols():
        name = symbol.get_name()
        if top:
            if symbol.is_referenced(): reads.add(name)
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace(): binds.add(name)
        elif symbol.is_global():
            if symbol.is_referenced(): reads.add(name)
            if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace(): binds.add(name)
        elif table.get_type() == "class": maybe.add(name)
    for child in table.get_children():
        walk(child, reads, binds, maybe, False)
for line in sys.stdin:
    reads, binds, maybe = set(), set(), set()
    try:
        walk(symtable.symtable(json.loads(line), "step", "exec"), reads, binds, maybe, True)
        compile(json.loads(line), "step", "exec")
        print(json.dumps([sorted(reads), sorted(binds), sorted(maybe)]))
    except (SyntaxError, RecursionError):
        print("null")
"#;

/// For each source on a line of JSON: the names that a run of it looked up as they were before, and those that it had
/// bound when it came to its end; null where it does not compile, and for a run that raised no bound names.
const RUNNER: &str = r#"
import builtins, json, random, signal, sys
class Any:
    def __init__(self, *_, **__): pass
    def __getattr__(self, name):
        if name.startswith("__"): raise AttributeError(name)
        return Any()
    def __call__(self, *_, **__): return Any()
    def __getitem__(self, _): return Any()
    def __setitem__(self, *_): pass
    def __add__(self, _): return Any()
    __radd__ = __iadd__ = __add__
    def __iter__(self): return iter([Any() for _ in range(random.randrange(3))])
    def __bool__(self): return random.random() < 0.5
    def __lt__(self, _): return random.random() < 0.5
    __gt__ = __lt__
    def __eq__(self, _): return random.random() < 0.5
    __hash__ = object.__hash__
    def __enter__(self): return self
    def __exit__(self, *_): return random.random() < 0.5
    def __format__(self, _): return ""
    def __len__(self): return 1
class Space(dict):
    def __getitem__(self, name):
        before = self.before.get(name)
        if name in self:
            value = dict.__getitem__(self, name)
            if value is before: self.reads.add(name)
            return value
        # Made for annotations by the interpreter itself.
        own = name == "__annotations__"
        if not own and name not in self.bound and name not in self.before: self.reads.add(name)
        raise KeyError(name)
    def __setitem__(self, name, value):
        self.bound.add(name)
        dict.__setitem__(self, name, value)
class Late(BaseException): pass
def late(*_): raise Late()
signal.signal(signal.SIGALRM, late)
def run(code):
    space = Space({name: Any() for name in "abcd"})
    space.before, space.reads, space.bound = dict(space), set(), set()
    dict.__setitem__(space, "__builtins__", builtins.__dict__)
    dict.__setitem__(space, "__name__", "step")
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        exec(code, space)
        ended = True
    except BaseException:
        ended = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    # Some stores go around `__setitem__`; they show in the value.
    bound = [name for name in space if name in space.bound or dict.get(space, name) is not space.before.get(name)]
    return [sorted(space.reads), bound if ended else None]
random.seed(1)
for line in sys.stdin:
    try:
        code = compile(json.loads(line), "step", "exec")
    except (SyntaxError, RecursionError):
        print("null")
        continue
    try:
        print(json.dumps(run(code)))
    except BaseException:
        print("null")
"#;

const STATEMENTS: &[&str] = &[
    "N = E",
    "N += E",
    "N: T = E",
    "E",
    "del N",
    "import N",
    "import m.x as N",
    "from m import N",
    "N, *N = E",
    "N.a = E",
    "N[E] = E",
    "for N in E:\n>S\nelse:\n>S",
    "while E:\n>S",
    "if E:\n>S\nelif E:\n>S\nelse:\n>S",
    "with E as N:\n>S",
    "try:\n>S\nexcept N as N:\n>S\nfinally:\n>S",
    "def N(N, N=E, *, k=E):\n>S\n>S",
    "class N(E):\n>S\n>S",
    "async def N():\n>await E\n>S",
    "match E:\n    case [N, *N]:\n>>S\n    case {'k': N}:\n>>S",
    "raise E",
    "assert E, E",
    "def N():\n>global N\n>S",
    "def N():\n>N = E\n>def g():\n>>nonlocal N\n>>S",
    "pass",
    "return E",
    "S\nS",
    "S\nS",
];

const EXPRESSIONS: &[&str] = &[
    "N",
    "N",
    "N",
    "1",
    "'t'",
    "N + E",
    "N(E)",
    "N.a",
    "N[E]",
    "(N := E)",
    "[E for N in E if E]",
    "{E: E for N in E}",
    "(E for N in E for N in E)",
    "lambda N, k=E: E",
    "E if E else E",
    "(E and E)",
    "f'{E} {N:{N}}'",
    "not E",
    "[E, E]",
    "len(E)",
    "(yield)",
    "E < E < E",
];

struct Draw<'r> {
    random: &'r mut Random,
    left: usize,
}

impl Draw<'_> {
    fn statement(&mut self, indent: usize) -> String {
        if self.left == 0 {
            return "    ".repeat(indent) + "pass";
        }
        self.left -= 1;
        let template = self.random.pick(STATEMENTS);
        let lines: Vec<String> = template.split('\n').map(|line| self.line(line, indent)).collect();
        lines.join("\n")
    }

    fn line(&mut self, line: &str, indent: usize) -> String {
        let deeper = line.chars().take_while(|letter| *letter == '>').count();
        let text = &line[deeper..];
        if text == "S" {
            return self.statement(indent + deeper);
        }
        "    ".repeat(indent + deeper) + &self.filled(text, 0)
    }

    /// Capital letters stand for what is drawn.
    fn filled(&mut self, text: &str, depth: usize) -> String {
        let mut filled = String::new();
        for letter in text.chars() {
            match letter {
                'N' | 'T' => filled.push_str(self.random.pick(&["a", "b", "c", "d", "len", "__p"])),
                'E' if depth > 3 => filled.push('1'),
                'E' => {
                    let template = self.random.pick(EXPRESSIONS);
                    filled.push_str(&self.filled(template, depth + 1));
                }
                other => filled.push(other),
            }
        }
        filled
    }
}

pub fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let left = 2 + random.below(10);
    let mut draw = Draw { random: &mut random, left };
    (0..3).map(|_| draw.statement(0)).collect::<Vec<_>>().join("\n")
}

/// The judge's answer about each source; none where there is no Python.
fn judged(judge: &str, sources: &[String]) -> Option<Vec<Value>> {
    let mut child = Command::new("python3")
        .args(["-c", judge])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let lines: String = sources.iter().map(|source| json!(source).to_string() + "\n").collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().map(|line| serde_json::from_str(line).ok()).collect()
}

/// `LONGHAUL_GRAPHS` says how many programs, `LONGHAUL_SEED` where to begin.
#[test]
fn scopes_are_those_that_python_sees() {
    let first = first_seed("LONGHAUL_SEED");
    let sources: Vec<String> = (first..first + count("LONGHAUL_GRAPHS", 1_000) as u64).map(program).collect();
    let Some(judged) = judged(JUDGE, &sources) else {
        eprintln!("no python3 here; nothing was judged");
        return;
    };
    assert_eq!(judged.len(), sources.len());
    let mut compared = 0;
    for ((source, judgement), seed) in sources.iter().zip(&judged).zip(first..) {
        let Ok(found) = (Python { mode: AnalysisMode::Precise }).analyse(source) else {
            // The judge's Python may be older or newer; what it takes is taken here.
            assert!(judgement.is_null(), "LONGHAUL_SEED={seed}: it compiles\n{source}");
            continue;
        };
        let Some([reads, binds, maybe]) = judgement.as_array().map(Vec::as_slice) else { continue };
        compared += 1;
        let text = |list: &Value| -> BTreeSet<String> {
            list.as_array().into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
        };
        let bound: BTreeSet<String> = found.writes().chain(found.deletes()).map(ToString::to_string).collect();
        let read: BTreeSet<String> = found.reads().chain(found.builtins()).map(ToString::to_string).collect();
        let (reads, binds, maybe) = (text(reads), text(binds), text(maybe));
        let told = || format!("LONGHAUL_SEED={seed}: of\n{source}\n{found:#?}");
        // `del a` and `a += 1` look `a` up, which the judge does not call a reference.
        let allowed: BTreeSet<String> = reads.union(&maybe).chain(&bound).cloned().collect();
        assert!(read.is_subset(&allowed), "reads of the module: {reads:?}\n{}", told());
        // A name that is read and never bound here comes from before.
        let exposed: BTreeSet<String> = reads.difference(&bound).cloned().collect();
        assert!(exposed.is_subset(&read), "read, and not bound: {exposed:?}\n{}", told());
        assert_eq!(bound, binds, "bound in the module\n{}", told());
    }
    assert!(compared * 10 > sources.len(), "{compared} of {} programs compile", sources.len());
}

/// `LONGHAUL_GRAPHS` says how many programs, `LONGHAUL_SEED` where to begin.
#[test]
fn runs_read_and_bind_what_was_found() {
    let first = first_seed("LONGHAUL_SEED");
    let sources: Vec<String> = (first..first + count("LONGHAUL_GRAPHS", 1_000) as u64).map(program).collect();
    let Some(judged) = judged(RUNNER, &sources) else {
        eprintln!("no python3 here; nothing was run");
        return;
    };
    assert_eq!(judged.len(), sources.len());
    let mut ended = 0;
    for ((source, seen), seed) in sources.iter().zip(&judged).zip(first..) {
        let (Ok(found), Some([reads, bound])) = (Python::default().analyse(source), seen.as_array().map(Vec::as_slice))
        else {
            continue;
        };
        let told = || format!("LONGHAUL_SEED={seed}: {seen} of\n{source}\n{found:#?}");
        for name in reads.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let predicted = found.of(name).is_some_and(|known| known.read.is_some());
            assert!(predicted, "read, and not found: {name}\n{}", told());
        }
        let Some(bound) = bound.as_array() else { continue };
        ended += 1;
        for name in found.definite_writes() {
            assert!(bound.iter().any(|one| one == &**name), "certain, and not bound: {name}\n{}", told());
        }
    }
    assert!(ended * 50 > sources.len(), "{ended} of {} programs came to their end", sources.len());
}
