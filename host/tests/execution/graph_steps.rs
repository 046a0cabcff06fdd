//! Steps of a graph in the shipped CPython: what they share, what is kept of them, and what runs again after a change.
//!
//! Needs the interpreter of `cargo xtask plugins`.

use crate::common::graph::{Bench, EXECUTOR, Walked};
use longhaul::exec::JobLimits;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_graph::{KeptValues, NextStep, Skip, StepEnd, StepId};
use longhaul_graph_runner::steps::{StepError, Steps};

/// Runs the steps and compares the values of their last expressions, in order; a dash for a step without one.
#[track_caller]
fn results(bench: &Bench, expected: &[(&str, &str)]) {
    for (id, value) in expected {
        let report = bench.report(id);
        let found = match (&report.ended, &report.result) {
            (StepEnd::Well, result) => result.clone().unwrap_or_else(|| "-".into()),
            (StepEnd::Raised(exception), _) => format!("{}: {}", exception.kind, exception.message),
            (StepEnd::Stopped { limit, message }, _) => format!("stopped: {limit:?} {message}"),
        };
        assert_eq!(found, *value, "step {id}: {report:#?}");
    }
}

async fn ran(steps: &[(&str, &str)]) -> (Bench, Walked) {
    let mut bench = Bench::new().with(steps);
    let walked = bench.walk().await;
    (bench, walked)
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn one_list_under_two_names_stays_one_list() {
    let (bench, _) = ran(&[("a", "a = b = []\nc = [a]"), ("b", "b.append(1)"), ("c", "a, c, a is b, c[0] is a")]).await;
    results(&bench, &[("c", "([1], [[1]], True, True)")]);
}

#[tokio::test]
async fn functions_look_names_up_when_they_are_called() {
    let (mut bench, _) =
        ran(&[("a", "x = 1\ndef f(n): return n + x"), ("b", "x = 10"), ("c", "f(1)"), ("d", "x, f(0)")]).await;
    results(&bench, &[("c", "11"), ("d", "(10, 10)")]);
    bench.change("b", "x = 100");
    let walked = bench.walk().await;
    assert_eq!(walked.ran, names(&["b", "c", "d"]));
    results(&bench, &[("c", "101"), ("d", "(100, 100)")]);
}

#[tokio::test]
async fn closures_share_their_variables_across_steps() {
    let counter = "def make():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up, lambda: n\nup, now = make()";
    let (bench, _) = ran(&[("a", counter), ("b", "up(); up()"), ("c", "now()")]).await;
    results(&bench, &[("b", "2"), ("c", "2")]);
}

#[tokio::test]
async fn classes_and_their_instances_go_from_step_to_step() {
    let classes = r#"
import abc, collections, dataclasses, enum, functools
class Base(abc.ABC):
    made = []
    def __init_subclass__(cls, **_): Base.made.append(cls.__name__)
    @abc.abstractmethod
    def area(self): ...
@dataclasses.dataclass
class Square(Base):
    side: float
    tags: list = dataclasses.field(default_factory=list)
    def area(self): return self.side ** 2
class Slots:
    __slots__ = ("a", "__b")
    def __init__(self): self.a, self.__b = 1, [2]
    @property
    def b(self): return self.__b
class Colour(enum.Enum):
    RED = 1
    BLUE = "b"
class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2
Point = collections.namedtuple("Point", "x y")
class Stack(list):
    def top(self): return self[-1]
class Oops(Exception):
    def __init__(self, code, text): super().__init__(text); self.code = code
try:
    raise Oops(7, "no")
except Oops as e:
    kept = e
@functools.cache
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
s, slots, red, point, stack = Square(2), Slots(), Colour.RED, Point(1, [2]), Stack([1, 2])
both = Bits.ONE | Bits.TWO
"#;
    let (bench, _) = ran(&[
        ("a", classes),
        ("b", "s.area(), s == Square(2), isinstance(s, Base), Base.made, slots.a, slots.b"),
        ("c", "red is Colour.RED, Colour('b').name, both is Bits(3), list(Colour.__members__)"),
        ("d", "point, point._replace(x=5).x, Point._fields, stack.top(), type(stack) is Stack, fib(30)"),
        ("e", "kept.code, str(kept), isinstance(kept, Oops)"),
        ("f", "class Cube(Square):\n    def area(self): return 6 * super().area()\nCube(1).area(), Base.made"),
        ("g", "try:\n    Base()\nexcept TypeError as error:\n    said = 'abstract' in str(error)\nsaid"),
    ])
    .await;
    results(
        &bench,
        &[
            ("b", "(4, True, True, ['Square'], 1, [2])"),
            ("c", "(True, 'BLUE', True, ['RED', 'BLUE'])"),
            ("d", "(Point(x=1, y=[2]), 5, ('x', 'y'), 2, True, 832040)"),
            ("e", "(7, 'no', True)"),
            ("f", "(6, ['Square', 'Cube'])"),
            ("g", "True"),
        ],
    );
}

#[tokio::test]
async fn a_change_through_another_name_is_seen_and_told() {
    // No analysis of names can know that `views` holds what `totals` is.
    let (mut bench, walked) =
        ran(&[("a", "totals = {}\nviews = [totals]"), ("b", "for view in views:\n    view['n'] = 1"), ("c", "totals")])
            .await;
    results(&bench, &[("c", "{'n': 1}")]);
    assert!(walked.missed.contains(&("b".into(), "c".into(), "totals".into())), "{walked:?}");
    bench.change("b", "for view in views:\n    view['n'] = 2");
    let walked = bench.walk().await;
    assert_eq!(walked.ran, names(&["b", "c"]));
    results(&bench, &[("c", "{'n': 2}")]);
}

#[tokio::test]
async fn a_step_that_only_reads_a_list_is_nothing_that_its_readers_need() {
    // The loop leaves `row`, which is a part of the list.
    let (mut bench, walked) = ran(&[
        ("a", "rows = [{'n': 1}, {'n': 2}]"),
        ("b", "for row in rows: print(row['n'])"),
        ("c", "sum(row['n'] for row in rows)"),
        ("d", "rows.append({'n': 3})"),
        ("e", "len(rows), row is rows[1]"),
    ])
    .await;
    results(&bench, &[("c", "3"), ("e", "(3, True)")]);
    assert_eq!(walked.missed, [], "{walked:?}");
    let needs = |bench: &Bench, id: &str| {
        let edges = bench.replay.graph().edges_into(&StepId::from(id)).expect("a step");
        edges.iter().map(|edge| edge.from.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((needs(&bench, "c"), needs(&bench, "e")), (names(&["a"]), names(&["a", "b", "d"])));
    bench.change("b", "row = rows[0]");
    let walked = bench.walk().await;
    assert_eq!(walked.ran, names(&["b", "d", "e"]), "the list is as it was for `c`");
    results(&bench, &[("c", "3"), ("e", "(3, False)")]);
}

#[tokio::test]
async fn a_read_that_analysis_missed_is_answered_by_a_second_run() {
    let (bench, walked) =
        ran(&[("a", "secret = 5"), ("b", "import __main__\ngot = getattr(__main__, 'sec' + 'ret')"), ("c", "got")])
            .await;
    results(&bench, &[("c", "5")]);
    assert_eq!(walked.again, names(&["b"]));
    assert_eq!(walked.missed, [("a".to_owned(), "b".to_owned(), "secret".to_owned())]);
}

#[tokio::test]
async fn what_leaves_the_same_makes_nobody_run() {
    let (mut bench, _) = ran(&[("a", "x = 2"), ("b", "y = x * x"), ("c", "z = y + 1"), ("d", "z")]).await;
    bench.change("a", "x = -2  # the other root");
    let walked = bench.walk().await;
    assert_eq!((walked.ran, walked.answered), (names(&["a", "b"]), names(&["c", "d"])));
    bench.change("a", "x = 2");
    let walked = bench.walk().await;
    assert_eq!((walked.ran.len(), walked.answered), (0, names(&["a", "b", "c", "d"])), "both were seen before");
    assert!(bench.stale().is_empty());
}

#[tokio::test]
async fn equal_values_have_equal_digests_however_they_came_about() {
    let first = "\
def f(x, *, k=1): return x + k
words, rows = ['ab', 'ab'], [{'a': 1.0}, {'a': 2.0}]
mixed = {3, 1, 2, (1, frozenset('xy'))}
cycle = [1]; cycle.append(cycle)
class A: n = 1
a = [A(), A()]
a[1].other, a[1].name = a[0], 'other'
";
    let second = "\
def f(x, *, k=1): return x + k
words, rows = [''.join(['a', c]) for c in 'bb'], [dict(a=n / 1) for n in (1, 2)]
mixed = set()
cycle = []; cycle += [1, cycle]
class A: n = 1
a = [A() for _ in range(2)]
setattr(a[1], 'oth' + 'er', a[0]); setattr(a[1], 'name', 'oth' + 'er')
for n in (2, (1, frozenset('yx')), 1, 3): mixed.add(n)
del n
";
    let uses = "[words, len(mixed), rows, f(1), cycle[1] is cycle, a[1].other is a[0]]";
    let (mut bench, _) = ran(&[("a", first), ("b", uses)]).await;
    results(&bench, &[("b", "[['ab', 'ab'], 4, [{'a': 1.0}, {'a': 2.0}], 2, True, True]")]);
    bench.change("a", second);
    let walked = bench.walk().await;
    assert_eq!((walked.ran, walked.answered), (names(&["a"]), names(&["b"])));
    // The sharing of objects is part of a value.
    bench.change("a", &second.replace("cycle += [1, cycle]", "cycle += [1, [1, cycle]]"));
    assert_eq!(bench.walk().await.ran, names(&["a", "b"]));
}

#[tokio::test]
async fn what_cannot_be_kept_is_made_again_by_the_steps_before() {
    let (mut bench, _) = ran(&[
        ("a", "xs = [1, 2, 3]\nprint('made')"),
        ("b", "g = (x * 10 for x in xs)"),
        ("c", "first = next(g)\nprint('first', first)"),
        ("d", "xs.append(4)"),
        ("e", "rest = list(g)\nprint('rest')"),
        ("f", "first, rest, xs"),
    ])
    .await;
    results(&bench, &[("f", "(10, [20, 30, 40], [1, 2, 3, 4])")]);
    let live = bench.report("b").delta.groups.iter().find(|group| group.names.contains("g")).expect("a group").clone();
    assert!(matches!(&live.kept, KeptValues::Live { reason, .. } if reason.contains("generator")), "{live:?}");
    assert_eq!(bench.report("e").stdout, "rest\n", "what the others print is not its output");
    bench.change("c", "first = next(g) + next(g)");
    bench.walk().await;
    results(&bench, &[("f", "(30, [30, 40], [1, 2, 3, 4])")]);
}

#[tokio::test]
async fn what_cannot_be_kept_is_still_there_behind_a_step_that_looked_at_all_names() {
    let (bench, _) = ran(&[
        ("a", "xs = []"),
        ("b", "g = (x for x in xs)"),
        ("c", "exec('y = 1')"),
        ("d", "sorted(n for n in globals() if n[0] != '_')"),
    ])
    .await;
    results(&bench, &[("d", "['g', 'xs', 'y']")]);
}

#[tokio::test]
async fn a_step_that_raised_keeps_what_it_changed_and_holds_up_the_rest() {
    let steps = [("a", "xs = [1]"), ("b", "xs.append(2)\nxs[9]\nxs.append(3)"), ("c", "sum(xs)"), ("d", "'free'")];
    let (mut bench, walked) = ran(&steps).await;
    results(&bench, &[("b", "IndexError: list index out of range"), ("d", "'free'")]);
    assert_eq!(walked.skipped, [("c".to_owned(), Skip::Blocked { by: StepId::from("b") })]);
    let report = bench.report("b");
    let StepEnd::Raised(exception) = &report.ended else { panic!("{report:#?}") };
    assert_eq!(exception.line, Some(2));
    assert_eq!(report.values.get("xs").map(String::as_str), Some("list of 2: [1, 2]"));
    let source = |_: &str| Some("xs.append(2)\nxs[9]\n".into());
    assert_eq!(
        exception.traceback(source),
        "Traceback (most recent call last):\n  File \"<step b>\", line 2, in <module>\n    xs[9]\nIndexError: list index out of range\n"
    );
    bench.change("b", "xs.append(2)");
    let walked = bench.walk().await;
    assert_eq!(walked.ran, names(&["b", "c"]));
    results(&bench, &[("c", "3")]);
    let mut going = Bench::new().with(&steps).keeping_going();
    going.walk().await;
    results(&going, &[("c", "3")]);
}

#[tokio::test]
async fn deleted_names_are_gone_until_bound_again() {
    let (bench, _) = ran(&[
        ("a", "x = y = 1"),
        ("b", "del x\ntmp = 1\ndel tmp"),
        ("c", "'x' in globals(), 'tmp' in globals(), y"),
        ("d", "def f():\n    global y\n    del y\nf()"),
        ("e", "sorted(n for n in globals() if n[0] != '_' and n != 'f')"),
    ])
    .await;
    results(&bench, &[("c", "(False, False, 1)"), ("e", "[]")]);
    let (bench, _) = ran(&[("a", "x = 1"), ("b", "x = 2\ndel x"), ("c", "x = 3"), ("d", "x")]).await;
    results(&bench, &[("d", "3")]);
}

#[tokio::test]
async fn random_numbers_and_decimal_context_flow_as_in_one_process() {
    let (mut bench, _) = ran(&[
        ("a", "import random, decimal"),
        ("b", "random.seed(7)"),
        ("c", "random.random()"),
        ("d", "random.random()"),
        ("e", "decimal.getcontext().prec = 5"),
        ("f", "decimal.Decimal(1) / 3"),
        ("g", "1 + 1"),
    ])
    .await;
    results(
        &bench,
        &[("c", "0.32383276483316237"), ("d", "0.15084917392450192"), ("f", "Decimal('0.33333')"), ("g", "2")],
    );
    bench.change("e", "decimal.getcontext().prec = 3");
    bench.walk().await;
    results(&bench, &[("d", "0.15084917392450192"), ("f", "Decimal('0.333')")]);
    bench.change("b", "random.seed(8)");
    let walked = bench.walk().await;
    assert!(!walked.ran.contains(&"f".into()), "{walked:?}");
    results(&bench, &[("c", "0.2267058593810488")]);
    // Without a seed of the program's, a step draws what it drew before.
    let unseeded = [("a", "import random\nrandom.random()"), ("b", "random.random()")];
    let ((one, _), (two, _)) = (ran(&unseeded).await, ran(&unseeded).await);
    assert_eq!((one.result("a"), one.result("b")), (two.result("a"), two.result("b")));
    assert_ne!(one.result("a"), one.result("b"));
}

#[tokio::test]
async fn the_namespace_as_a_whole_counts_as_everything() {
    let (mut bench, _) = ran(&[
        ("a", "x = 1"),
        ("b", "sorted(n for n in globals() if not n.startswith('_'))"),
        ("c", "exec('z = x + 1')"),
        ("d", "z, 'x' in vars(), 'len' in globals(), len(dir()) > 1"),
    ])
    .await;
    results(&bench, &[("b", "['x']"), ("d", "(2, True, False, True)")]);
    bench.change("a", "x = 1\nnew = 2");
    bench.walk().await;
    results(&bench, &[("b", "['new', 'x']"), ("d", "(2, True, False, True)")]);
}

#[tokio::test]
async fn hostile_steps_end_in_their_report() {
    let nothing = [("z", "1 + 1")];
    for (what, source, expected) in [
        (
            "pickling raises",
            "class A:\n    def __reduce_ex__(self, p): raise ValueError\n    __getstate__ = None\na = A()",
            "-",
        ),
        (
            "comparing raises",
            "class A:\n    def __eq__(self, o): raise ValueError\n    def __hash__(self): raise ValueError\na = [A(), A()]",
            "-",
        ),
        ("attributes lie", "class A:\n    def __getattribute__(self, n): raise ValueError(n)\na = A()", "-"),
        ("a class lies", "class A:\n    __class__ = property(lambda s: 1 / 0)\na = A()", "-"),
        (
            "the metaclass lies",
            "class M(type):\n    def __getattribute__(c, n): raise ValueError(n)\nclass A(metaclass=M): pass\na = A()",
            "-",
        ),
        (
            "builtins are replaced",
            "import builtins\nfor n in ('len', 'isinstance', 'dict', 'type', 'sorted', 'print', 'str'): setattr(builtins, n, None)",
            "-",
        ),
        (
            "modules are replaced",
            "import sys, pickle, json, io\npickle.Pickler = pickle.loads = json.dumps = io.BytesIO = None\nsys.modules.clear()",
            "-",
        ),
        ("no recursion limit", "import sys\nsys.setrecursionlimit(60)\ndef f(): f()\nf()", "RecursionError: "),
        ("names are no names", "globals()[5] = 1\nglobals()['a b'] = 2\nglobals()['\\ud800'] = 3", "-"),
        ("it exits", "import sys\nsys.exit(3)", "SystemExit: 3"),
        ("it really exits", "import os\nos._exit(3)", "SystemExit: 3"),
        (
            "an exception that cannot be shown",
            "class E(BaseException):\n    def __str__(self): raise E\nraise E",
            "E: (it cannot be shown)",
        ),
        (
            "a result that cannot be shown",
            "class A:\n    def __repr__(self): raise ValueError('no')\nA()",
            "ValueError: no",
        ),
    ] {
        let mut bench = Bench::new().with(&[("a", source)]).with(&nothing).keeping_going();
        bench.walk().await;
        let report = bench.report("a");
        let text = match &report.ended {
            StepEnd::Well => "-".to_owned(),
            StepEnd::Raised(exception) => format!("{}: {}", exception.kind, exception.message),
            StepEnd::Stopped { message, .. } => format!("stopped {message}"),
        };
        assert!(text.starts_with(expected), "{what}: {report:#?}");
        results(&bench, &[("z", "2")]);
    }
}

#[tokio::test]
async fn what_is_too_deep_is_live_and_what_overflows_is_stopped() {
    let deep = "deep = []\nfor _ in range({}): deep = [deep]";
    let count = "n = 0\nwhile deep:\n    deep = deep[0]\n    n += 1\nn";
    for levels in [100, 2_000] {
        let (bench, _) = ran(&[("a", &deep.replace("{}", &levels.to_string())), ("b", count)]).await;
        results(&bench, &[("b", &levels.to_string())]);
        let groups = &bench.report("a").delta.groups;
        let group = groups.iter().find(|group| group.names.contains("deep")).expect("a group");
        let is_live = matches!(group.kept, KeptValues::Live { .. });
        assert_eq!(is_live, levels > 1_000);
    }
    let (bench, walked) = ran(&[
        ("a", "x = 1"),
        ("b", "def f(n): return [f(n + 1)]\nimport sys\nsys.setrecursionlimit(10**7)\nx = f(0)"),
        ("c", "x"),
    ])
    .await;
    let ended = &bench.report("b").ended;
    assert!(!matches!(ended, StepEnd::Well), "{ended:?}");
    assert_eq!(walked.skipped, [("c".to_owned(), Skip::Blocked { by: StepId::from("b") })]);
}

#[tokio::test]
async fn limits_stop_one_step_and_leave_the_namespace_as_it_was() {
    for (limits, source, limit) in [
        (JobLimits { timeout_ms: 400, ..JobLimits::default() }, "x = 2\nwhile True: pass", Some("timeout_ms")),
        (JobLimits { fuel_max: 300_000_000, ..JobLimits::default() }, "x = 2\nwhile True: pass", Some("fuel_max")),
    ] {
        let mut bench =
            Bench::of(Steps::new(EXECUTOR.clone(), limits)).with(&[("a", "x = 1"), ("b", source), ("c", "x")]);
        let walked = bench.walk().await;
        let StepEnd::Stopped { limit: found, .. } = &bench.report("b").ended else {
            panic!("{:#?}", bench.report("b"))
        };
        assert_eq!(found.as_deref(), limit);
        assert_eq!(walked.skipped.len(), 1);
        assert!(bench.stale().contains("b"), "it may come further the next time");
        bench.change("b", "pass");
        bench.walk().await;
        results(&bench, &[("c", "1")]);
    }
    let small = JobLimits { memory_bytes_max: 64 << 20, ..JobLimits::default() };
    let mut bench = Bench::of(Steps::new(EXECUTOR.clone(), small)).with(&[("a", "x = bytearray(100 << 20)")]);
    bench.walk().await;
    results(&bench, &[("a", "MemoryError: ")]);
    assert!(bench.report("a").memory_bytes_peak <= 64 << 20);
}

#[tokio::test]
async fn output_figures_and_traces_are_in_the_report() {
    let (bench, _) = ran(&[("a", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n'é'")]).await;
    let report = bench.report("a");
    assert_eq!(
        (report.stdout.as_str(), report.stderr.as_str(), report.result.as_deref()),
        ("out\n", "err\n", Some("'é'"))
    );
    assert!(report.fuel_used > 0 && report.memory_bytes_peak > 0 && report.duration_us > 0, "{report:#?}");
    let (bench, _) = ran(&[("a", "print('x' * 3_000_000)")]).await;
    assert_eq!((bench.report("a").stdout.len(), bench.report("a").truncated), (1 << 20, true));
}

#[tokio::test]
async fn megabytes_of_values_go_through() {
    let (bench, _) = ran(&[
        ("a", "rows = [{'id': i, 'name': f'n{i}'} for i in range(20_000)]\ndata = bytes(4 << 20)"),
        ("b", "rows[19_999]['id'], len(data)"),
        ("c", "big = bytearray(60 << 20)"),
        ("d", "len(big)"),
    ])
    .await;
    results(&bench, &[("b", "(19999, 4194304)"), ("d", "62914560")]);
    let kept = &bench.report("c").delta.groups[0].kept;
    assert!(matches!(kept, KeptValues::Live { .. }), "{kept:?}");
}

#[tokio::test]
async fn a_step_that_may_act_is_not_repeated_silently() {
    let place = tempfile::tempdir().expect("a folder");
    let grant = DirectoryGrant { guest: "/work".into(), host: place.path().to_owned(), access: Access::Write };
    let steps = Steps::new(EXECUTOR.clone(), JobLimits::default()).with_grants(vec![grant], Vec::new());
    assert!(steps.acts());
    let log = "with open('log', 'a') as file: file.write('once\\n')";
    let mut bench = Bench::of(steps.clone()).with(&[("a", "n = 1"), ("b", log), ("c", "n + 1")]);
    bench.walk().await;
    bench.walk().await;
    let written = || std::fs::read_to_string(place.path().join("log")).expect("a log");
    assert_eq!(written(), "once\n");
    // The start is stored before the run, so that an interrupted process finds it.
    bench.change("b", &format!("{log}\n"));
    bench.replay.start().expect("a walk");
    let NextStep::Run(request) = bench.replay.next().expect("a step") else { panic!("b runs") };
    assert!(request.acts && bench.replay.take_changed().contains(&StepId::from("b")));
    let walked = bench.walk().await;
    assert_eq!(walked.skipped, [("b".to_owned(), Skip::Unknown)]);
    assert_eq!(written(), "once\n");
    bench.replay.again(&StepId::from("b")).expect("a step");
    assert_eq!(bench.walk().await.ran, names(&["b"]));
    assert_eq!(written(), "once\nonce\n");
    // A value that lives in an instance alone cannot be computed again without the effect.
    let mut bench = Bench::of(steps).with(&[("a", "g = iter({1: 2})"), ("b", "next(g)")]);
    assert_eq!(bench.walk().await.skipped, [("b".to_owned(), Skip::LiveActs { producer: StepId::from("a") })]);
}

#[tokio::test]
async fn a_value_that_is_gone_is_an_error_that_names_it() {
    let (mut bench, _) = ran(&[("a", "x = 1")]).await;
    bench.content.0.clear();
    bench.add("b", "x");
    bench.replay.start().expect("a walk");
    let NextStep::Run(request) = bench.replay.next().expect("a step") else { panic!("b runs") };
    let error = bench.steps.run(&request, &bench.content).await.expect_err("nothing to load");
    assert!(matches!(&error, StepError::Missing { names, .. } if names == "x"), "{error}");
}

#[tokio::test]
async fn a_value_that_is_not_what_was_written_is_the_steps_failure() {
    let (mut bench, _) = ran(&[("a", "x = [1]")]).await;
    for bytes in bench.content.0.values_mut() {
        *bytes = b"not a pickle".as_slice().into();
    }
    bench.add("b", "x");
    bench.walk().await;
    let StepEnd::Raised(exception) = &bench.report("b").ended else { panic!("{:#?}", bench.report("b")) };
    assert_eq!(exception.kind, "ValueNotLoaded");
}
