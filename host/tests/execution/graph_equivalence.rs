//! Replaying what a change touches gives what running everything from the start gives.
//!
//! Programs are made of a seed, run step by step, changed in one step and replayed. Beside it the changed program runs
//! from its start in one interpreter, by a few lines of Python that know nothing of graphs: each step's output, result
//! and exception must be equal, and the namespace at the end, written down with its sharing of objects.
//!
//! `LONGHAUL_PROGRAMS` says how many, 100 by default, and `LONGHAUL_SEED` from which seed on. A failure prints the
//! program with its seed. Needs the interpreter of `cargo xtask plugins`. This runs 10,000 programs, and prints how
//! many steps were not run again:
//!
//! ```sh
//! LONGHAUL_PROGRAMS=10000 cargo nextest run --release -p longhaul --test execution graph_equivalence --no-capture
//! ```

mod program;

use crate::common::graph::{Bench, EXECUTOR};
use longhaul::exec::{Code, Job};
use longhaul_core::Digest;
use longhaul_graph::{StepEnd, StepId};
use program::{Random, program, step};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;

/// Writes a namespace down: equal texts for equal values that share alike.
const PROBE: &str = r#"
def written(names):
    numbers, out = {}, []
    def write(value):
        kind = type(value)
        if kind in (int, float, str, bytes, bool, type(None)):
            out.append(repr(value))
            return
        if kind is tuple:
            out.append('(')
            for part in value: write(part)
            out.append(')')
            return
        if kind is type(write.__code__) or kind is type(out.append) or kind.__name__ == 'module':
            out.append('<' + getattr(value, '__name__', getattr(value, 'co_name', '')) + '>')
            return
        if id(value) in numbers:
            out.append(f'#{numbers[id(value)]}')
            return
        numbers[id(value)] = len(numbers)
        kept.append(value)
        out.append(kind.__name__)
        if kind is list:
            out.append('[')
            for part in value: write(part)
            out.append(']')
        elif kind is dict:
            out.append('{')
            for key, part in value.items():
                write(key)
                write(part)
            out.append('}')
        elif kind.__name__ == 'function':
            out.append(value.__qualname__)
            write(value.__defaults__)
            write(tuple(cell.cell_contents for cell in value.__closure__ or ()))
        elif kind is type:
            out.append(value.__qualname__)
            for name in sorted(vars(value)):
                if name in ('k', 'made', 'up', '__init__', '__repr__'):
                    out.append(name)
                    write(vars(value)[name])
        elif isinstance(value, BaseException):
            write(value.args)
        elif kind.__name__ != 'generator':
            write(kind)
            write(value.__dict__)
    kept = []
    for name in sorted(names):
        if not (name.startswith('__') or name in ('written', 'probed')):
            out.append('\n' + name)
            write(names[name])
    return ' '.join(out)
"#;

/// Runs steps in one namespace, from the first to the last.
const ORACLE: &str = r#"
import ast, contextlib, io, json, random
names, said, seeded = {'__name__': '__main__'}, [], None
for step in CONTEXT['steps']:
    if seeded is None or random.getstate() == seeded:
        random.seed(int(step['seed'], 16))
        seeded = random.getstate()
    out, result, error = io.StringIO(), None, None
    with contextlib.redirect_stdout(out):
        try:
            tree = ast.parse(step['source'])
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, '<step>', 'exec'), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), '<step>', 'eval'), names)
                result = None if value is None else repr(value)
        except BaseException as raised:
            error = f'{type(raised).__name__}: {raised}'
    said.append({'stdout': out.getvalue(), 'result': result, 'error': error})
exec(CONTEXT['probe'])
print(json.dumps({'steps': said, 'names': written(names)}))
"#;

/// The result of one step.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Said {
    stdout: String,
    result: Option<String>,
    error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Oracle {
    steps: Vec<Said>,
    names: String,
}

/// A number that is none would run another number of programs than was asked for.
fn number_of(variable: &str, default: u64) -> u64 {
    let number =
        |text: String| text.parse::<u64>().unwrap_or_else(|_| panic!("{variable} is `{text}`; write a number"));
    std::env::var(variable).map_or(default, number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaying_what_a_change_touches_equals_running_everything() {
    let (count, first) = (number_of("LONGHAUL_PROGRAMS", 100), number_of("LONGHAUL_SEED", 1));
    let begun = Instant::now();
    Bench::new().steps.keep_ready(8).await.expect("instances");
    let mut totals = BTreeMap::<&str, usize>::new();
    for seed in first..first + count {
        check(seed, &mut totals).await;
    }
    println!("{count} programs from seed {first} in {:.0} s: {totals:?}", begun.elapsed().as_secs_f64());
    // Replays that ran everything would be equal, too.
    let (reused, all) = (totals["not run again"], totals["steps"]);
    assert!(reused > all / 5, "{totals:?}");
}

/// Makes the program of a seed, changes one step, and compares.
async fn check(seed: u64, totals: &mut BTreeMap<&'static str, usize>) {
    let mut random = Random(seed);
    let mut sources = program(&mut random);
    let mut bench = Bench::new().keeping_going();
    for (at, source) in sources.iter().enumerate() {
        bench.add(&format!("s{at}"), source);
    }
    bench.walk().await;
    let changed = random.below(sources.len());
    let mut source = step(&mut random);
    // As often a small change as another step.
    if random.below(2) == 0 {
        source = format!("{}{source}", sources[changed]);
    }
    sources[changed].clone_from(&source);
    bench.change(&format!("s{changed}"), &source);
    let walked = bench.walk().await;
    let shown = || {
        let steps: Vec<String> = sources.iter().enumerate().map(|(at, source)| format!("# s{at}\n{source}")).collect();
        format!("seed {seed}, s{changed} was changed\n{}\n{walked:?}", steps.join("\n"))
    };
    assert!(bench.stale().is_empty(), "{}", shown());
    let expected = from_the_start(&bench, &sources).await;
    for (at, expected) in expected.steps.iter().enumerate() {
        assert_eq!(said(&bench, &format!("s{at}")), *expected, "step s{at} of {}", shown());
    }
    let ran = walked.ran.len();
    bench.add("probe", &format!("{PROBE}\nprobed = dict(globals())\nprint(written(probed))"));
    bench.walk().await;
    let names = &bench.report("probe").stdout;
    assert_eq!(names.trim_end(), expected.names.trim_end(), "{}\n{:#?}", shown(), bench.report("probe").ended);
    *totals.entry("steps").or_default() += sources.len();
    *totals.entry("not run again").or_default() += sources.len() - ran;
    *totals.entry("raised").or_default() += expected.steps.iter().filter(|said| said.error.is_some()).count();
    *totals.entry("run twice for a missed read").or_default() += walked.again.len();
}

fn said(bench: &Bench, id: &str) -> Said {
    let report = bench.report(id);
    let error = match &report.ended {
        StepEnd::Well => None,
        StepEnd::Raised(exception) => Some(format!("{}: {}", exception.kind, exception.message)),
        StepEnd::Stopped { message, .. } => Some(format!("stopped: {message}")),
    };
    Said { stdout: report.stdout.clone(), result: report.result.clone(), error }
}

async fn from_the_start(bench: &Bench, sources: &[String]) -> Oracle {
    let seed = bench.replay.settings().seed;
    let steps: Vec<_> = sources
        .iter()
        .enumerate()
        .map(|(at, source)| {
            let id = StepId::from(format!("s{at}").as_str());
            json!({ "source": source, "seed": Digest::of_parts(&[seed.as_bytes(), id.as_str().as_bytes()]) })
        })
        .collect();
    let context = json!({ "steps": steps, "probe": PROBE });
    let job = Job { context, ..Job::of(Code::Python(ORACLE.into())) };
    let report = EXECUTOR.run(job).await.expect("it runs");
    serde_json::from_str(&report.stdout).unwrap_or_else(|error| panic!("{error}: {report:#?}"))
}
