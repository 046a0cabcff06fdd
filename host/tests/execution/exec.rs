//! Untrusted code, run as a library call: what it prints, what it sees, and what stops it.
//!
//! Needs the interpreters of `cargo xtask plugins`.

mod server;

use crate::common::executor_cases::{self, Wanted};
use crate::common::lab::Lab;
use crate::common::{repository, test_cache};
use longhaul::exec::{
    Code, CompileLimits, ExecError, Executor, ExecutorPaths, GraphLanguage, Job, JobLimits, JobReport,
};
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use longhaul_engine::{Engine, EngineOptions, Jail};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Tests share it as a program of its own would: the interpreters are compiled and loaded once.
pub(super) static EXECUTOR: LazyLock<Executor> =
    LazyLock::new(|| Executor::new(places(CompileLimits::default())).expect("an executor"));

fn places(compile_limits: CompileLimits) -> ExecutorPaths {
    let cache = test_cache().join("compiled");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&cache).expect("ours");
    let compiler = env!("CARGO_BIN_EXE_longhaul").into();
    ExecutorPaths { cache, runtimes: vec![repository().join("target/plugins")], compiler, compile_limits }
}

async fn run(job: Job) -> JobReport {
    EXECUTOR.run(job).await.unwrap_or_else(|error| panic!("{error}"))
}

fn python(source: &str) -> Job {
    Job::of(Code::Python(source.into()))
}

fn javascript(source: &str) -> Job {
    Job::of(Code::JavaScript(source.into()))
}

fn within(job: Job, change: impl FnOnce(&mut JobLimits)) -> Job {
    let mut job = job;
    change(&mut job.limits);
    job
}

fn quick(job: Job) -> Job {
    within(job, |limits| limits.timeout_ms = 400)
}

/// Runs a job and compares standard output, exit code and limit.
#[track_caller]
fn expect(report: &JobReport, stdout: &str, exit_code: Option<i32>, limit: Option<&str>) {
    let found = (report.stdout.as_str(), report.exit_code, report.limit.as_deref());
    assert_eq!(found, (stdout, exit_code, limit), "{report:#?}");
    assert_eq!(report.success, exit_code == Some(0), "{report:#?}");
    assert_eq!(report.error_message.is_none(), report.success, "{report:#?}");
    assert!(report.duration_seconds >= 0.0 && report.fuel_used > 0, "{report:#?}");
}

#[tokio::test]
async fn code_prints_and_ends() {
    for (job, stdout, code) in [
        (python("print(sum(range(10)))"), "45\n", 0),
        (python("import sys\nprint('a')\nsys.exit(3)"), "a\n", 3),
        (python("raise ValueError('x')"), "", 1),
        (python("if"), "", 1),
        (python("import nothing_of_the_kind"), "", 1),
        (python("print(CONTEXT)"), "{}\n", 0),
        (javascript("console.log([1, 2].map(x => x + 1).join())"), "2,3\n", 0),
        (javascript("throw new Error('x')"), "", 1),
        (javascript("let a ="), "", 1),
        (javascript("console.log(JSON.stringify(CONTEXT))"), "{}\n", 0),
    ] {
        expect(&run(job).await, stdout, Some(code), None);
    }
}

#[tokio::test]
async fn typescript_and_modules_beside_it_run() {
    let with = |job: Job, files: &[(&str, &str)]| {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        Job { files, ..job }
    };
    let lib = ("lib/count.ts", "export type N = number;\nexport const double = (n: N): N => n * 2;");
    let source =
        "import { double, type N } from './lib/count.js';\nconst n: N = 2;\nconsole.log(double(n) satisfies N)";
    expect(&run(with(Job::of(Code::TypeScript(source.into())), &[lib])).await, "4\n", Some(0), None);
    let source = "import { double } from './lib/count'\nconsole.log(double(4))";
    expect(&run(with(javascript(source), &[lib])).await, "8\n", Some(0), None);
    expect(&run(javascript("let n: number = 1")).await, "", Some(1), None);
    expect(&run(with(python("import helper; print(helper.X)"), &[("helper.py", "X = 5")])).await, "5\n", Some(0), None);
    let long = "/".repeat(1_000_000);
    let refused = EXECUTOR.run(with(javascript("1"), &[("long.js", long.as_str())])).await;
    assert!(matches!(refused, Err(ExecError::SourceTooLong { bytes: 1_000_001 })), "{refused:?}");
}

#[tokio::test]
async fn a_deep_recursion_of_javascript_is_an_error_that_can_be_caught() {
    for down in [
        "const down = () => down() + 1",
        "function down() { [1].map(down) }",
        "class A { constructor() { new A() } }; const down = () => new A()",
    ] {
        let source = format!("{down}\ntry {{ down() }} catch (error) {{ console.log(error instanceof RangeError) }}");
        expect(&run(javascript(&source)).await, "true\n", Some(0), None);
    }
    let report = run(javascript("const down = (n) => down(n + 1) + 1; down(0)")).await;
    expect(&report, "", Some(1), None);
    assert!(report.stderr.contains("RangeError: Maximum call stack size exceeded"), "{report:#?}");
    stays_healthy().await;
}

#[tokio::test]
async fn what_is_handed_in_is_seen() {
    let with = |job: Job| Job { context: json!({ "name": "Zoë", "list": [1, 2] }), stdin: "line\n".into(), ..job };
    let report = run(with(python("print(CONTEXT['name'], sum(CONTEXT['list']), input())"))).await;
    expect(&report, "Zoë 3 line\n", Some(0), None);
    let report = run(with(javascript("console.log(CONTEXT.name, CONTEXT.list.length)"))).await;
    expect(&report, "Zoë 2\n", Some(0), None);
}

#[tokio::test]
async fn what_was_printed_before_a_limit_is_kept() {
    let endless = "print('before', flush=True)\n";
    // The second is one call into C, at which no interpreter could look in between.
    for rest in ["while True: pass", "sum(range(10**15))"] {
        let report = run(quick(python(&format!("{endless}{rest}")))).await;
        expect(&report, "before\n", None, Some("timeout_ms"));
        assert!(report.error_message.is_some_and(|text| text.contains("Timeout")));
    }
    let report = run(quick(javascript("console.log('before'); for (;;) {}"))).await;
    expect(&report, "before\n", None, Some("timeout_ms"));
    let report =
        run(within(python(&format!("{endless}while True: pass")), |limits| limits.fuel_max = 100_000_000)).await;
    expect(&report, "before\n", None, Some("fuel_max"));
}

/// After each of what follows, whatever it did.
async fn stays_healthy() {
    expect(&run(python("print(1)")).await, "1\n", Some(0), None);
    expect(&run(javascript("console.log(1)")).await, "1\n", Some(0), None);
}

#[tokio::test]
async fn memory_is_bounded() {
    let report = run(python("x = bytearray(512 << 20)")).await;
    assert!(report.error_message.as_deref().is_some_and(|text| text.contains("memory limit")), "{report:#?}");
    assert!(report.stderr.contains("MemoryError"), "{report:#?}");
    for source in [
        "x = bytearray(512 << 20)",
        "x = []\nwhile True: x.append(bytes(10**9))",
        "x = [bytearray(64 << 20) for _ in range(160)]",
        "x = 'x'\nwhile True: x += x",
    ] {
        let report = run(python(source)).await;
        expect(&report, "", Some(1), Some("memory_bytes_max"));
        assert!(report.memory_bytes_peak <= 256 << 20, "{report:#?}");
    }
    // More than 32 bits can say: there is nothing to ask the host for.
    for source in ["x = bytearray(10 << 30)", "x = 'x' * (10 << 30)"] {
        expect(&run(python(source)).await, "", Some(1), None);
    }
    let report = run(javascript("const a = []; for (;;) a.push(new Uint8Array(64 << 20))")).await;
    assert_eq!(report.limit.as_deref(), Some("memory_bytes_max"), "{report:#?}");
    assert!(!report.success && report.memory_bytes_peak <= 256 << 20, "{report:#?}");
    stays_healthy().await;
}

#[tokio::test]
async fn output_is_bounded() {
    for job in [python("while True: print('x' * 1000)"), javascript("for (;;) console.log('x'.repeat(1000))")] {
        let report = run(within(quick(job), |limits| limits.output_bytes_max = 10_000)).await;
        assert_eq!((report.stdout.len(), report.truncated), (10_000, true));
        assert_eq!(report.limit.as_deref(), Some("timeout_ms"));
    }
    stays_healthy().await;
}

#[tokio::test]
async fn what_is_printed_in_one_go_is_whole() {
    // More than the 64 KiB that the host takes at a time.
    for source in [
        "print('x' * 300_000, end='')",
        "import sys; sys.stdout.buffer.write(b'x' * 300_000)",
        "import array, sys; sys.stdout.buffer.write(array.array('i', [0x78787878]) * 75_000)",
    ] {
        let report = run(python(source)).await;
        assert_eq!((report.stdout.len(), report.truncated, report.exit_code), (300_000, false, Some(0)), "{source}");
    }
    let report =
        run(python("import sys; sys.stderr.close(); print('\\udc80'); sys.stdout.buffer.write(b'\\xff'); 1 / 0"));
    let report = report.await;
    expect(&report, "\\udc80\n\u{fffd}", Some(1), None);
    assert!(report.stderr.ends_with("ZeroDivisionError: division by zero\n"), "{report:#?}");
}

#[tokio::test]
async fn what_a_source_leaves_open_is_written() {
    let (_directory, inside) = folder();
    // The function holds on to the file, as most sources have one that does.
    let source = "import io, sys
file = open('/data/new', 'w')
def name(): return file.name
class Last:
    def __del__(self): print('and let go')
last = Last()
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8', write_through=False)
file.write(name())
print('held back')";
    let report = run(seeing(python(source), &inside, Access::Write)).await;
    expect(&report, "held back\nand let go\n", Some(0), None);
    assert_eq!(fs::read_to_string(inside.join("new")).expect("it is there"), "/data/new");
}

#[tokio::test]
async fn a_source_that_spoils_its_own_names_and_streams_still_ends() {
    for (source, stdout) in [
        ("import sys; print(1); del sys.stdout, sys.stderr", "1\n"),
        ("import sys; print(1); sys.stdout = sys.stderr = 7", "1\n"),
        ("print(1); globals().clear()", "1\n"),
        (
            "class Odd:\n __hash__ = object.__hash__\n def __eq__(self, other): 1 / 0\nglobals()[Odd()] = print(1)",
            "1\n",
        ),
        ("class Odd:\n def flush(self): raise SystemExit(3)\nimport sys; print(1); sys.stdout = Odd()", "1\n"),
    ] {
        expect(&run(python(source)).await, stdout, Some(0), None);
    }
}

#[tokio::test]
async fn depth_is_bounded() {
    let deep = "import sys\nsys.setrecursionlimit(10**7)\ndef f(n): return f(n + 1)\nf(0)";
    let report = run(within(python(deep), |limits| limits.timeout_ms = 60_000)).await;
    assert!(!report.success && report.error_message.is_some(), "{report:#?}");
    let report = run(python("def f(n): return f(n + 1)\nf(0)")).await;
    expect(&report, "", Some(1), None);
    assert!(report.stderr.contains("RecursionError"), "{report:#?}");
    let report = run(javascript("const f = (n) => f(n + 1) + 1; f(0)")).await;
    assert!(!report.success && report.error_message.is_some(), "{report:#?}");
    stays_healthy().await;
}

#[tokio::test]
async fn json_that_nests_very_deep_is_an_exception() {
    for levels in [10, 499, 500] {
        let source =
            format!("import json\njson.loads('[' * {levels} + ']' * {levels})\njson.loads('\"' + '[' * 9000 + '\"')");
        expect(&run(python(&source)).await, "", Some(0), None);
    }
    for levels in [501, 2_000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let source = format!("import json\njson.loads('{open}' * {levels} + '1' + '{close}' * {levels})");
            let report = run(python(&source)).await;
            expect(&report, "", Some(1), None);
            assert!(report.stderr.contains("RecursionError"), "{report:#?}");
        }
    }
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    // The object that is the context is a level of its own.
    let with = |levels: usize| Job { context: json!({ "deep": nested(levels) }), ..python("print(len(CONTEXT))") };
    expect(&run(with(126)).await, "1\n", Some(0), None);
    for levels in [127, 1_000] {
        let refused = EXECUTOR.run(with(levels)).await;
        assert!(matches!(refused, Err(ExecError::ContextTooDeep)), "{refused:?}");
    }
    stays_healthy().await;
}

#[tokio::test]
async fn nothing_of_the_host_is_seen() {
    for source in [
        "import os; assert not os.environ, os.environ",
        "import os; os.fork()",
        "import os\nwhile True: os.fork()",
        "import os; os.system('ls')",
        "import os; os.execv('/bin/ls', ['ls'])",
        "import os; os.posix_spawn('/bin/ls', ['ls'], {})",
        "import os; os.kill(1, 9)",
        "import subprocess; subprocess.run(['ls'])",
        "import subprocess\nwhile True: subprocess.Popen(['python3'])",
        "import multiprocessing; multiprocessing.Process(target=print).start()",
        "import ctypes; ctypes.CDLL(None)",
        "import asyncio; asyncio.run(asyncio.create_subprocess_shell('ls'))",
        "import socket; socket.create_connection(('127.0.0.1', 80), 1)",
        "open('/etc/passwd')",
        "open('../../etc/passwd')",
        "import threading; threading.Thread(target=print).start()",
        "import _thread\nwhile True: _thread.start_new_thread(print, ())",
        "from concurrent.futures import ThreadPoolExecutor as T; T().submit(print).result()",
    ] {
        let report = run(python(source)).await;
        let is_fine = source.contains("environ");
        assert_eq!(report.success, is_fine, "{source}: {report:#?}");
        assert!(is_fine || report.exit_code == Some(1), "an exception and no trap: {source}: {report:#?}");
    }
    stays_healthy().await;
}

/// A job that may ask these.
fn asking(job: Job, hosts: &[&str]) -> Job {
    let hosts = hosts.iter().map(|host| HostPattern::try_from((*host).to_owned()).expect("a pattern")).collect();
    Job { hosts, ..job }
}

#[tokio::test]
async fn python_asks_the_hosts_that_it_was_granted() {
    let (server, other, nobody) = (server::start(), server::start(), server::nobody());
    let opening =
        "import urllib.request as u, urllib.error as e, http.client as c\nat, other, nobody = CONTEXT['urls']\n";
    for (rest, stdout) in [
        ("r = u.urlopen(at + '/hello')\nprint(r.status, r.headers['x-kind'], r.read())", "200 plain b'hello'"),
        ("print(u.urlopen(u.Request(at + '/echo', b'body', {'X-Name': 'n'})).read())", "b'POST n 4 body'"),
        ("print(u.urlopen(at + '/echo', b'x' * 300_000).read())", "b'POST  300000 xxxxxxxxxxxxxxxxxxxx'"),
        ("print(u.urlopen(u.Request(at + '/echo', iter([b'two', b'parts']))).read())", "b'POST  8 twoparts'"),
        ("print(u.urlopen(u.Request(at + '/echo', method='DELETE')).read())", "b'DELETE  0 '"),
        ("print(u.urlopen(at + '/pieces').read(4), len(u.urlopen(at + '/pieces').read()))", "b'onet' 6"),
        ("try: u.urlopen(at + '/missing')\nexcept e.HTTPError as x: print(x.code, x.read())", "404 b'no such thing'"),
        ("print(u.urlopen(at + '/away?' + at + '/hello').read())", "b'hello'"),
        (
            "try: u.urlopen(at + '/away?' + other + '/hello')\nexcept e.URLError as x: print('--allow-host ' + other in str(x))",
            "True",
        ),
        ("try: u.urlopen(nobody)\nexcept e.URLError as x: print(type(x.reason).__name__)", "ConnectionRefusedError"),
        ("try: u.urlopen(at + '/broken').read()\nexcept OSError as x: print('broken')", "broken"),
        (
            "k = c.HTTPConnection(at[7:], timeout=5)\nfor _ in range(2):\n k.request('GET', '/hello'); print(k.getresponse().read())",
            "b'hello'\nb'hello'",
        ),
        (
            "k = c.HTTPConnection(at[7:])\ntry: k.request('GET', '/hello', headers={'Upgrade': 'x'}); k.getresponse()\nexcept ValueError: print('no')",
            "no",
        ),
    ] {
        let job = Job { context: json!({ "urls": [server, other, nobody] }), ..python(&format!("{opening}{rest}")) };
        expect(&run(asking(job, &[&server, &nobody])).await, &format!("{stdout}\n"), Some(0), None);
    }
}

#[tokio::test]
async fn javascript_asks_the_hosts_that_it_was_granted() {
    let (server, other, nobody) = (server::start(), server::start(), server::nobody());
    let opening =
        "const [at, other, nobody] = CONTEXT.urls;\nconst text = async (...args) => (await fetch(...args)).text();\n";
    for (rest, stdout) in [
        (
            "const r = await fetch(at + '/hello'); console.log(r.status, r.headers.get('x-kind'), await r.text())",
            "200 plain hello",
        ),
        (
            "console.log(await text(at + '/echo', { method: 'POST', body: 'body', headers: { 'X-Name': 'n' } }))",
            "POST n 4 body",
        ),
        (
            "console.log(await text(at + '/echo', { method: 'PUT', body: 'x'.repeat(300_000) }))",
            "PUT  300000 xxxxxxxxxxxxxxxxxxxx",
        ),
        ("console.log(await text(at + '/echo', { method: 'DELETE' }))", "DELETE  0 "),
        ("console.log((await text(at + '/pieces')).length)", "6"),
        (
            "const r = await fetch(at + '/missing'); console.log(r.ok, r.status, await r.text())",
            "false 404 no such thing",
        ),
        (
            "const r = await fetch(at + '/away?' + at + '/hello'); console.log(r.redirected, await r.text())",
            "true hello",
        ),
        (
            "await fetch(at + '/away?' + other + '/hello').catch((e) => console.log(e.message.includes('--allow-host ' + other)))",
            "true",
        ),
        ("await fetch(nobody).catch((e) => console.log(e.name, e.cause.code))", "TypeError ECONNREFUSED"),
        ("await fetch(at + '/broken').then((r) => r.text()).catch((e) => console.log(e.name))", "TypeError"),
        ("await fetch(at, { signal: AbortSignal.abort() }).catch((e) => console.log(e.name))", "AbortError"),
    ] {
        let job =
            Job { context: json!({ "urls": [server, other, nobody] }), ..javascript(&format!("{opening}{rest}")) };
        expect(&run(asking(job, &[&server, &nobody])).await, &format!("{stdout}\n"), Some(0), None);
    }
}

#[tokio::test]
async fn a_host_that_was_not_granted_is_an_exception_of_the_language() {
    let server = server::start();
    let context = json!({ "at": server });
    for (source, says) in [
        ("import urllib.request as u; u.urlopen(CONTEXT['at'] + '/hello')", "URLError"),
        ("import urllib.request as u; u.urlopen(CONTEXT['at'], b'body')", "URLError"),
        ("import urllib.request as u; u.urlopen('https://example.com/')", "URLError"),
        (
            "import http.client as c; k = c.HTTPConnection(CONTEXT['at'][7:]); k.request('GET', '/'); k.getresponse()",
            "OSError",
        ),
    ] {
        let report = run(Job { context: context.clone(), ..python(source) }).await;
        expect(&report, "", Some(1), None);
        let told = report.stderr.contains(says) && report.stderr.contains("run it with --allow-host");
        assert!(told && report.stderr.contains("may not reach"), "{source}: {report:#?}");
        assert!(!report.stderr.contains("Exception ignored"), "{source}: {report:#?}");
    }
    // A response that was never made used to complain about its missing file when it was finalized.
    let caught =
        "import urllib.request as u\ntry: u.urlopen(CONTEXT['at'])\nexcept OSError as x: print(type(x).__name__)";
    let report = run(Job { context: context.clone(), ..python(caught) }).await;
    expect(&report, "URLError\n", Some(0), None);
    assert_eq!(report.stderr, "", "the refusal is all that is told");
    let asks = "fetch(CONTEXT.at).catch((error) => console.log(error.name, error.message))";
    let report = run(Job { context: context.clone(), ..javascript(asks) }).await;
    assert!(report.stdout.starts_with("TypeError fetch failed: "), "{report:#?}");
    assert!(report.stdout.contains("run it with --allow-host"), "{report:#?}");
    let report = run(Job { context: context.clone(), ..javascript("fetch(CONTEXT.at)") }).await;
    expect(&report, "", Some(1), None);
    stays_healthy().await;
}

#[tokio::test]
async fn work_may_have_a_module_of_the_runtime_s_name() {
    let (_directory, inside) = folder();
    fs::write(inside.join("app.py"), "name = 'the work'").expect("ours");
    let directories = vec![DirectoryGrant { guest: "/work".into(), host: inside, access: Access::Read }];
    let report = run(Job { directories, ..python("import app; print(app.name)") }).await;
    expect(&report, "the work\n", Some(0), None);
}

/// A folder with a file, a link out of it, and a file beside it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let inside = directory.path().join("inside");
    fs::create_dir(&inside).expect("ours");
    fs::write(inside.join("a.txt"), "kept").expect("ours");
    fs::write(directory.path().join("secret.txt"), "secret").expect("ours");
    symlink("../secret.txt", inside.join("out")).expect("ours");
    (directory, inside)
}

fn seeing(job: Job, host: &Path, access: Access) -> Job {
    Job { directories: vec![DirectoryGrant { guest: "/data".into(), host: host.to_owned(), access }], ..job }
}

#[tokio::test]
async fn a_read_only_directory_cannot_be_changed() {
    let (_directory, inside) = folder();
    for source in [
        "open('/data/a.txt', 'w')",
        "open('/data/a.txt', 'r+').truncate(0)",
        "open('/data/new', 'x')",
        "import os; os.truncate('/data/a.txt', 0)",
        "import os; os.rename('/data/a.txt', '/data/b.txt')",
        "import os; os.link('/data/a.txt', '/data/b.txt')",
        "import os; os.symlink('a.txt', '/data/b.txt')",
        "import os; os.unlink('/data/a.txt')",
        "import os; os.mkdir('/data/d')",
        "import os; os.utime('/data/a.txt', (0, 0))",
    ] {
        let report = run(seeing(python(source), &inside, Access::Read)).await;
        assert_eq!(report.exit_code, Some(1), "{source}: {report:#?}");
    }
    let report = run(seeing(python("print(open('/data/a.txt').read())"), &inside, Access::Read)).await;
    expect(&report, "kept\n", Some(0), None);
    let mut names: Vec<_> =
        fs::read_dir(&inside).expect("ours").map(|entry| entry.expect("ours").file_name()).collect();
    names.sort();
    assert_eq!(names, ["a.txt", "out"]);
    assert_eq!(fs::read_to_string(inside.join("a.txt")).expect("ours"), "kept");
}

#[tokio::test]
async fn code_writes_no_more_than_its_limit_and_the_report_names_it() {
    let writes = async |source: &str| {
        let (_directory, inside) = folder();
        let limits = JobLimits { disk_bytes_max: 1 << 20, ..JobLimits::default() };
        let report = run(Job { limits, ..seeing(python(source), &inside, Access::Write) }).await;
        let length = |entry: fs::DirEntry| entry.metadata().expect("ours").len();
        let bytes: u64 = fs::read_dir(&inside).expect("ours").map(|entry| length(entry.expect("ours"))).sum();
        let entries = fs::read_dir(&inside).expect("ours").count();
        (report, bytes, entries)
    };
    for source in [
        "open('/data/large', 'wb').write(b'x' * (2 << 20))",
        "for number in range(100):\n with open('/data/again', 'wb') as file: file.write(b'x' * (64 << 10))",
        "open('/data/a.txt', 'ab').write(b'x' * (2 << 20))",
        "import os; os.truncate('/data/a.txt', 2 << 20)",
        "import os; file = os.open('/data/b', os.O_CREAT | os.O_WRONLY); [os.write(file, bytes(9_000)) for _ in range(999)]",
        "for number in range(1_000): open(f'/data/{number}', 'w')",
        "import os\nfor number in range(1_000): os.mkdir(f'/data/{number}')",
        "import os\nfor number in range(1_000): os.symlink('a.txt', f'/data/{number}')",
    ] {
        let (report, bytes, entries) = writes(source).await;
        assert_eq!(report.exit_code, Some(1), "{source}: {report:#?}");
        assert_eq!(report.limit.as_deref(), Some("disk_bytes_max"), "{source}: {report:#?}");
        assert!(report.error_message.as_deref().is_some_and(|text| text.contains("1048576 bytes")), "{report:#?}");
        assert!(bytes <= 1 << 21 && entries < 300, "{source}: {bytes} bytes, {entries} entries");
    }
    // A full disk is an error that code may handle. The C library of the guest has one code for all errors of a stream.
    for (write, code) in [
        ("import os; os.truncate('/data/a.txt', 2 << 20)", "ENOSPC\n"),
        ("open('/data/large', 'wb').write(bytes(2 << 20))", "EIO\n"),
    ] {
        let handled =
            format!("import errno\ntry:\n {write}\nexcept OSError as error:\n print(errno.errorcode[error.errno])");
        let (report, ..) = writes(&handled).await;
        expect(&report, code, Some(0), None);
    }
    let (report, bytes, _) = writes("open('/data/small', 'wb').write(bytes(900_000))").await;
    expect(&report, "", Some(0), None);
    assert!(bytes >= 900_000, "what fits is written");
}

#[tokio::test]
async fn no_path_leads_out_of_a_directory() {
    let (directory, inside) = folder();
    for source in [
        "open('/data/out').read()",
        "open('/data/../secret.txt').read()",
        "open('/secret.txt').read()",
        "open('/data/../../../../../../etc/passwd').read()",
        "import os; os.chdir('/data'); open('../../etc/passwd').read()",
        "import os; os.symlink('../secret.txt', '/data/own'); open('/data/own').read()",
        "import os; os.rename('/data/a.txt', '/data/../a.txt')",
    ] {
        let report = run(seeing(python(source), &inside, Access::Write)).await;
        assert_eq!(report.exit_code, Some(1), "{source}: {report:#?}");
        assert!(!report.stdout.contains("secret"), "{report:#?}");
    }
    let report = run(seeing(python("open('/data/new.txt', 'w').write('made')"), &inside, Access::Write)).await;
    expect(&report, "", Some(0), None);
    assert_eq!(fs::read_to_string(inside.join("new.txt")).expect("ours"), "made");
    assert!(!directory.path().join("a.txt").exists());
}

/// Prints through preview 1 and exits with 3, or loops.
fn program(body: &str) -> Job {
    let text = format!(
        r#"(module
            (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            (data (i32.const 16) "hello\n")
            (func (export "_start")
                (i32.store (i32.const 0) (i32.const 16)) (i32.store (i32.const 4) (i32.const 6))
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
                {body}))"#
    );
    Job::of(Code::Wasm(wat::parse_str(text).expect("valid")))
}

#[tokio::test]
async fn a_program_for_wasi_runs() {
    expect(&run(program("")).await, "hello\n", Some(0), None);
    for code in [0, 1, 3, 255] {
        expect(&run(program(&format!("(call $exit (i32.const {code}))"))).await, "hello\n", Some(code), None);
    }
    expect(&run(quick(program("(loop $l (br $l))"))).await, "hello\n", None, Some("timeout_ms"));
    let trapped = run(program("unreachable")).await;
    assert_eq!((trapped.exit_code, trapped.stdout.as_str()), (None, "hello\n"));
    for bytes in [b"\0asm".to_vec(), b"no wasm".to_vec(), wat::parse_str("(module)").expect("valid")] {
        let refused = EXECUTOR.run(Job::of(Code::Wasm(bytes))).await;
        assert!(matches!(refused, Err(ExecError::Load(_))), "{refused:?}");
    }
}

/// A program with a function of `statements` statements that depend on each other, which is slow to compile.
fn slow_to_compile(statements: usize) -> Job {
    let one = |at: usize| {
        let (to, left, right) = (at % 40, (at + 13) % 40, (at + 7) % 40);
        format!("(local.set {to} (i64.rotl (i64.xor (local.get {left}) (i64.const {at})) (local.get {right})))")
    };
    let body: String = (0..statements).map(one).collect();
    let slow = format!("(func (export \"slow\") (local {}) {body})", "i64 ".repeat(40));
    let text = format!("(module (memory (export \"memory\") 1) (func (export \"_start\")) {slow})");
    Job::of(Code::Wasm(wat::parse_str(text).expect("valid")))
}

#[tokio::test]
async fn a_program_that_takes_too_much_to_compile_is_refused() {
    let executor = Executor::new(places(CompileLimits { cpu_ms_max: 1_000, ..CompileLimits::default() }));
    let executor = executor.expect("an executor");
    let refused = executor.run(slow_to_compile(300_000)).await;
    assert!(matches!(&refused, Err(ExecError::CompileLimit { hit, .. }) if hit.name == "cpu_ms_max"), "{refused:?}");
    let report = executor.run(program("")).await.unwrap_or_else(|error| panic!("{error}"));
    expect(&report, "hello\n", Some(0), None);
}

#[tokio::test]
async fn what_cannot_be_run_is_refused_before_it_starts() {
    let long = EXECUTOR.run(python(&"#".repeat(50 << 20))).await;
    assert!(matches!(long, Err(ExecError::SourceTooLong { .. })), "{long:?}");
    let list = EXECUTOR.run(Job { context: json!([1]), ..python("") }).await;
    assert!(matches!(list, Err(ExecError::ContextNotObject { .. })), "{list:?}");
}

#[tokio::test]
async fn an_instance_that_waited_serves_one_job_as_a_new_one_does() {
    let executor = Executor::new(places(CompileLimits::default())).expect("an executor");
    executor.keep_ready(GraphLanguage::Python, JobLimits::default(), 2).await.expect("two");
    let mut random = BTreeSet::new();
    for _ in 0..6 {
        let source =
            "import builtins, random\nassert not hasattr(builtins, 'left')\nbuiltins.left = 1\nprint(random.random())";
        let report = executor.run(python(source)).await.expect("it runs");
        assert!(report.success, "{report:#?}");
        random.insert(report.stdout);
    }
    assert_eq!(random.len(), 6, "fresh randomness each time: {random:?}");
    let source = "import linecache, sys
found = [sorted(globals()), CONTEXT, __name__, sys.argv, sys.path, len(sys.meta_path), linecache.getlines('<python>')]
print(found, sorted(sys.modules), sys.stdin.read(), sys.stdout.name)";
    executor.keep_ready(GraphLanguage::Python, JobLimits::default(), 1).await.expect("one");
    let sees = async || executor.run(python(source)).await.expect("it runs").stdout;
    let (ready, fresh) = (sees().await, run(python(source)).await.stdout);
    assert_eq!(ready, fresh);
    assert!(ready.contains("'__main__', ['<python>']"), "{ready}");
}

/// The notes about files in a cache.
fn notes(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).expect("readable").filter_map(Result::ok).map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "known")).collect()
}

#[tokio::test]
async fn a_file_that_did_not_change_is_known_and_one_that_did_is_read() {
    let (place, _) = folder();
    let cache = place.path().join("cache");
    // Each time as a new process would.
    let load = async |path: &Path| {
        let jail = Jail {
            program: env!("CARGO_BIN_EXE_longhaul").into(),
            arguments: vec!["compile-child".into()],
            limits: CompileLimits::default(),
        };
        let options = EngineOptions { on_demand: true, ..EngineOptions::default() };
        let engine = Engine::new(cache.clone(), jail, &options).expect("an engine");
        engine.load_file("files", path).await.unwrap_or_else(|error| panic!("{error}")).inspection().clone()
    };
    let shipped = |name: &str| repository().join("target/plugins").join(name);
    let first = load(&shipped("files.wasm")).await;
    let [note] = notes(&cache).try_into().expect("it was built a while ago");
    let known = load(&shipped("files.wasm")).await;
    assert_eq!((known.digest, known.exports, known.bytes), (first.digest, first.exports.clone(), first.bytes));
    // The known files come from the note; otherwise this would not show.
    let text = fs::read_to_string(&note).expect("text");
    fs::write(&note, text.replace("\"functions\":", "\"functions\":1")).expect("ours");
    assert_ne!(load(&shipped("files.wasm")).await.functions, first.functions);
    // Without what it was compiled to, or with half a note, it is read and compiled as at first.
    for entry in fs::read_dir(&cache).expect("readable").filter_map(Result::ok) {
        if entry.path().extension().is_some_and(|end| end == "cwasm") {
            fs::remove_file(entry.path()).expect("ours");
        }
    }
    assert_eq!(load(&shipped("files.wasm")).await.functions, first.functions);
    fs::write(&note, &text[..text.len() / 2]).expect("ours");
    assert_eq!(load(&shipped("files.wasm")).await.functions, first.functions);
    // A file that changed a moment ago is not noted, so that its next change shows.
    let path = place.path().join("changes.wasm");
    for (name, same) in [("files.wasm", true), ("check-evaluator.wasm", false)] {
        fs::copy(shipped(name), &path).expect("copied");
        assert_eq!(load(&path).await.digest == first.digest, same, "{name}");
        assert_eq!(notes(&cache), std::slice::from_ref(&note));
    }
}

/// The cases about running code; those about agents as records are in `agents.rs`.
#[tokio::test]
async fn executor_cases_about_code() {
    let mut driven = 0;
    for case in executor_cases::executions() {
        let Wanted::Runs(source) = executor_cases::wanted(&case) else { continue };
        let timeout_ms = case["timeout_s"].as_u64().expect("seconds") * 1_000;
        check_case(&case, &run(within(python(&source), |limits| limits.timeout_ms = timeout_ms)).await);
        driven += 1;
    }
    assert!(driven > 0);
}

#[track_caller]
fn check_case(case: &Value, report: &JobReport) {
    let expected = &case["expected"];
    let message = report.error_message.clone().unwrap_or_default();
    for (name, value) in expected.as_object().expect("an object") {
        let holds = match name.as_str() {
            "success" => report.success == value.as_bool().expect("a bool"),
            "stdout_contains" => report.stdout.contains(value.as_str().expect("text")),
            "exit_code" => report.exit_code.map(i64::from) == value.as_i64(),
            "error_contains" | "error" => message.contains(value.as_str().expect("text")),
            "duration_min_s" => report.duration_seconds >= value.as_f64().expect("seconds"),
            "context" => serde_json::from_str::<Value>(&report.stdout).is_ok_and(|seen| seen == *value),
            // The work of another program, and the status of a record that is not kept here.
            "original" | "task_status" => true,
            other => panic!("{}: `{other}` is not known", case["id"]),
        };
        assert!(holds, "{}: {name}: {report:#?}", case["id"]);
    }
}

#[test]
fn the_command_shows_output_and_says_what_is_wrong() {
    let lab = Lab::empty();
    let file = |name: &str, text: &str| {
        let path = lab.path(name);
        fs::write(&path, text).expect("ours");
        path.to_str().expect("plain").to_owned()
    };
    let good = file("good.py", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n");
    // The first time it is compiled, which is said.
    lab.run(&["exec", &good]).expect(0);
    let ran = lab.run(&["exec", &good]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out\n", "err\n"));
    let report = lab.json(&["exec", &good, "--context", "{\"a\": 1}"]);
    assert_eq!((&report["success"], &report["exit_code"]), (&json!(true), &json!(0)));

    let bad = file("bad.py", "print('so far')\nimport sys; sys.exit(7)\n");
    let ran = lab.run(&["exec", &bad]).expect(7);
    assert!(ran.stdout == "so far\n" && ran.stderr.contains("exit code 7"), "{}", ran.said());
    let ran = lab.run(&["exec", &bad, "--exit-code-of-longhaul"]).expect(0);
    assert!(ran.stdout == "so far\n" && ran.stderr.contains("exit code 7"), "{}", ran.said());
    lab.run(&["exec", "what.txt", "--exit-code-of-longhaul"]).expect(1);
    let unknown = file("what.txt", "1");
    let huge = file("huge.py", &"#".repeat(50 << 20));
    let missing = lab.path("missing.py").to_str().expect("plain").to_owned();
    for (args, code, says) in [
        (vec!["exec", unknown.as_str()], 125, "say --lang"),
        (vec!["exec", missing.as_str()], 125, "missing.py"),
        (vec!["exec", "../../etc/passwd.py"], 125, "passwd.py"),
        (vec!["exec", "../../etc/passwd"], 125, "say --lang"),
        (vec!["exec", huge.as_str()], 125, "is longer than 1000000 bytes"),
        (vec!["exec", "/", "--lang", "python"], 125, "is not a file"),
        (vec!["exec", &good, "--context", "{"], 125, "--context is not JSON"),
        (vec!["exec", &good, "--context", "[]"], 125, "must be a JSON object"),
        (vec!["exec", &good, "--dir", "/nowhere:/data"], 2, "is no directory"),
        (vec!["exec", &good, "--dir", "/tmp:data"], 2, "where GUEST starts with `/`"),
        (vec!["exec", &good, "--allow-host", "ftp://x"], 2, "ftp://x"),
        (vec!["exec", &good, "--lang", "cobol"], 2, "cobol"),
        (vec!["exec", &good, "--lang", "wasm"], 125, "does not start as WebAssembly"),
        (vec!["exec", &good, "--module", "../helper.py"], 125, "is not below the working directory"),
        (vec!["exec", &good, "--module", "missing.py"], 125, "missing.py"),
    ] {
        let ran = lab.run(&args);
        assert_eq!(ran.code(), Some(code), "{args:?}: {}", ran.said());
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.said());
    }
}

#[test]
fn the_command_ends_with_a_code_for_the_limit_that_stopped_the_code() {
    let lab = Lab::empty();
    let file = |name: &str, text: &str| {
        let path = lab.path(name);
        fs::write(&path, text).expect("ours");
        path.to_str().expect("plain").to_owned()
    };
    let (endless, hungry) = (file("endless.py", "while True: pass\n"), file("hungry.py", "x = b'a' * (1 << 30)\n"));
    for (args, code, limit) in [
        (vec!["exec", &endless, "--timeout-ms", "400"], 124, "timeout_ms"),
        (vec!["exec", &endless, "--fuel-max", "1000000000"], 122, "fuel_max"),
        (vec!["exec", &hungry], 121, "memory_bytes_max"),
    ] {
        lab.run(&args).expect(code);
        let ran = lab.run(&[&args[..], &["--json"]].concat()).expect(code);
        let report: Value = serde_json::from_str(&ran.stdout).expect("a report");
        assert_eq!(report["limit"], limit, "{args:?}: {}", ran.said());
        lab.run(&[&args[..], &["--exit-code-of-longhaul"]].concat()).expect(0);
    }
}

/// Compiled code is mapped from the cache, and the system's words for a denial named neither the cache nor the reason.
#[test]
fn a_cache_that_is_mounted_noexec_is_told_in_one_line_with_what_to_do() {
    let lab = Lab::new("", "");
    let good = lab.path("good.py");
    fs::write(&good, "print(1)\n").expect("ours");
    let cache = lab.path("cache");
    fs::DirBuilder::new().mode(0o700).create(&cache).expect("ours");
    let script = format!(
        "mount -t tmpfs -o noexec,mode=700 tmpfs {0} && export LONGHAUL_CACHE={0} && exec \"$0\" \"$@\"",
        cache.display()
    );
    let flags = if rustix::process::geteuid().is_root() { "-m" } else { "-Urm" };
    let through = ["unshare", flags, "sh", "-c", &script];
    let ran = lab.run_through(&through, &["exec", good.to_str().expect("plain")]).expect(125);
    assert_eq!(ran.error_lines(), 1, "{}", ran.said());
    let named = format!("`{}`", cache.join("compiled").display());
    for words in [named.as_str(), "is mounted noexec", "LONGHAUL_CACHE or XDG_CACHE_HOME"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.said());
    }
    assert!(!ran.stderr.contains("Permission denied"), "{}", ran.said());
    let told = lab.run_through(&through, &["doctor"]).expect(1).stdout;
    let told = told.lines().find(|line| line.starts_with("disk of cache")).expect("it is told");
    assert!(told.contains("BROKEN: ") && told.contains("is mounted noexec"), "{told}");
}

#[test]
fn the_command_takes_interpreters_that_are_installed_in_its_own_data_directory() {
    let lab = Lab::empty();
    let good = lab.path("good.py");
    fs::write(&good, "print(1)\n").expect("ours");
    fs::create_dir_all(lab.home().join("plugins")).expect("ours");
    fs::write(lab.home().join("plugins/python.wasm"), "no component").expect("ours");
    let mut command = lab.command(&["exec", good.to_str().expect("plain")]);
    command.env_remove("LONGHAUL_PLUGINS");
    let ran = lab.start_command(command).wait().expect(125);
    assert!(ran.stderr.contains("`python`") && ran.stderr.contains("WebAssembly"), "{}", ran.said());
}
