//! Python of this machine in the sandbox of native programs: the same result as in WebAssembly, the same limits,
//! packages of a virtual environment, and no way out.

use crate::common::graph::EXECUTOR;
use crate::common::lab::Lab;
use crate::common::python::python as python3;
use crate::common::{self, repository};
use crate::exec::server;
use longhaul::exec::{Code, ExecError, Job, JobLimits, JobOutput, JobReport, NativeRuntime, Runtime};
use longhaul_core::grant::{Access, DirectoryGrant, HostPattern};
use serde_json::{Value, json};
use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn native(source: &str) -> Job {
    Job {
        runtime: Runtime::Native(NativeRuntime::default()),
        limits: JobLimits { timeout_ms: 60_000, ..JobLimits::native() },
        ..Job::of(Code::Python(source.into()))
    }
}

fn with_venv(job: Job, venv: &Path) -> Job {
    Job { runtime: Runtime::Native(NativeRuntime { venv: Some(venv.into()), ..NativeRuntime::default() }), ..job }
}

fn within(mut job: Job, change: impl FnOnce(&mut JobLimits)) -> Job {
    change(&mut job.limits);
    job
}

async fn run(job: Job) -> JobReport {
    EXECUTOR.run(job).await.unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn expect(report: &JobReport, stdout: &str, exit_code: Option<i32>, limit: Option<&str>) {
    let found = (report.stdout.as_str(), report.exit_code, report.limit.as_deref());
    assert_eq!(found, (stdout, exit_code, limit), "{report:#?}");
    assert_eq!(report.success, exit_code == Some(0), "{report:#?}");
    assert_eq!(report.error_message.is_none(), report.success, "{report:#?}");
    assert_eq!((report.sandbox.as_deref(), report.fuel_used), (Some("full"), 0), "{report:#?}");
}

/// A virtual environment with a package of one module, as an operator makes it.
fn environment(place: &Path) -> PathBuf {
    let venv = place.join("venv");
    let made = python3().args(["-m", "venv", "--without-pip"]).arg(&venv).output().expect("python3 is installed");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let site = fs::read_dir(venv.join("lib")).expect("ours").next().expect("one version").expect("ours").path();
    fs::write(site.join("site-packages/tiny_package.py"), "def double(n):\n    return 2 * n\n").expect("ours");
    venv
}

#[tokio::test]
async fn native_code_prints_and_ends_as_in_webassembly() {
    for (source, stdout, code) in [
        ("print(sum(range(10)))", "45\n", 0),
        ("import sys\nprint('a')\nsys.exit(3)", "a\n", 3),
        ("import sys\nsys.exit('words')", "", 1),
        ("raise ValueError('x')", "", 1),
        ("if", "", 1),
        ("import nothing_of_the_kind", "", 1),
        ("print(CONTEXT)", "{}\n", 0),
        ("print(__name__, __import__('sys').argv)", "__main__ ['<python>']\n", 0),
    ] {
        expect(&run(native(source)).await, stdout, Some(code), None);
    }
    let job =
        Job { context: json!({ "name": "Zoë" }), stdin: "line\n".into(), ..native("print(CONTEXT['name'], input())") };
    let report = run(job).await;
    expect(&report, "Zoë line\n", Some(0), None);
    assert!(report.memory_bytes_peak > 1 << 20, "{report:#?}");
    let report = run(native("def f():\n    raise ValueError('x')\nf()")).await;
    assert!(report.stderr.contains("in f\n    raise ValueError('x')"), "{report:#?}");
    assert!(!report.stderr.contains("runner.py"), "the host's own frames are left out: {report:#?}");
    let report = run(native("import subprocess\nprint(subprocess.run(['cat'], capture_output=True).stdout)")).await;
    expect(&report, "b''\n", Some(0), None);
}

#[tokio::test]
async fn packages_of_the_virtual_environment_are_imported_and_no_others() {
    let place = tempfile::tempdir().expect("a directory");
    let venv = environment(place.path());
    let source = "import sys, tiny_package\nprint(tiny_package.double(21), sys.prefix)";
    let report = run(with_venv(native(source), &venv)).await;
    expect(&report, &format!("42 {}\n", venv.display()), Some(0), None);
    expect(&run(native(source)).await, "", Some(1), None);
    // It cannot be changed from inside.
    let source = "import tiny_package\nopen(tiny_package.__file__, 'a')";
    let report = run(with_venv(native(source), &venv)).await;
    expect(&report, "", Some(1), None);
    assert!(report.stderr.contains("OSError") || report.stderr.contains("PermissionError"), "{report:#?}");
}

#[tokio::test]
async fn limits_of_native_code_are_those_of_every_job() {
    let report =
        run(within(native("print('before', flush=True)\nwhile True: pass"), |limits| limits.timeout_ms = 1_500)).await;
    expect(&report, "before\n", None, Some("timeout_ms"));
    assert!(report.error_message.is_some_and(|text| text.contains("Timeout: it ran longer than 1500 ms")));

    let small = |source: &str| within(native(source), |limits| limits.memory_bytes_max = 256 << 20);
    let report = run(small("x = bytearray(512 << 20)")).await;
    expect(&report, "", Some(1), Some("memory_bytes_max"));
    assert!(report.stderr.contains("MemoryError"), "{report:#?}");
    // None of them is over the limit.
    let source = "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        x = bytearray(100 << 20)\n        \
                  for at in range(0, len(x), 4096): x[at] = 1\n        time.sleep(60)\ntime.sleep(60)";
    expect(&run(small(source)).await, "", None, Some("memory_bytes_max"));

    let report = run(within(native("print('a' * 5000)"), |limits| limits.output_bytes_max = 100)).await;
    assert!(report.success && report.truncated && report.stdout.len() < 200, "{report:#?}");
    let source = "import os, time\nwhile True:\n    if os.fork() == 0: time.sleep(60)";
    let report = run(native(source)).await;
    assert!(!report.success, "{report:#?}");
}

#[tokio::test]
async fn native_code_sees_the_directories_that_it_is_granted_and_no_others() {
    let place = tempfile::tempdir().expect("a directory");
    let top = place.path().canonicalize().expect("its name");
    for name in ["read", "write", "secret"] {
        fs::create_dir(top.join(name)).expect("ours");
        fs::write(top.join(name).join("file"), name).expect("ours");
    }
    let grant = |name: &str, access| {
        let host = top.join(name);
        DirectoryGrant { guest: host.display().to_string(), host, access }
    };
    let source = "import os\ntop = CONTEXT['top']\nprint(open(top + '/read/file').read())\n\
                  open(top + '/write/new', 'w').write('made')\nprint(os.path.exists(top + '/secret'))\n\
                  open(top + '/read/new', 'w')";
    let job = Job {
        context: json!({ "top": top }),
        directories: vec![grant("read", Access::Read), grant("write", Access::Write)],
        ..native(source)
    };
    let report = run(job).await;
    expect(&report, "read\nFalse\n", Some(1), None);
    assert_eq!(fs::read_to_string(top.join("write/new")).expect("made"), "made");
    let elsewhere = DirectoryGrant { guest: "/data".into(), ..grant("read", Access::Read) };
    let refused = EXECUTOR.run(Job { directories: vec![elsewhere], ..native("1") }).await.expect_err("it is elsewhere");
    assert!(matches!(refused, ExecError::DirectoryElsewhere { .. }), "{refused}");
}

/// Each way out once, as from a check: the script is that of the sandbox's own tests.
#[tokio::test]
async fn every_attack_of_native_code_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let top = place.path().canonicalize().expect("its name");
    for file in ["home/.ssh/id", "home/api-key", "checkout/.env"] {
        fs::create_dir_all(top.join(file).parent().expect("one")).expect("ours");
        fs::write(top.join(file), "SECRET").expect("ours");
    }
    let network = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let _by_path = UnixListener::bind(top.join("service")).expect("bound");
    let _packets = UnixDatagram::bind(top.join("packets")).expect("bound");
    let name = format!("longhaul-native-{}", std::process::id());
    let abstract_name = |name: &str| SocketAddr::from_abstract_name(name).expect("a name");
    let _by_name = UnixListener::bind_addr(&abstract_name(&name)).expect("bound");
    let _packets_by_name = UnixDatagram::bind_addr(&abstract_name(&format!("{name}-packets"))).expect("bound");
    let script = fs::read_to_string(repository().join("host/crates/sandbox/tests/attacks.py")).expect("there");
    let arguments = json!([
        "attacks",
        std::process::id().to_string(),
        network.local_addr().expect("bound").port().to_string(),
        name,
        top,
        "full",
    ]);
    let source = format!("import sys\nsys.argv = {arguments}\n{script}");
    let report = run(within(native(&source), |limits| limits.memory_bytes_max = u64::MAX)).await;
    assert!(report.stdout.ends_with("end\n"), "{report:#?}");
    let reached: Vec<&str> = report.stdout.lines().filter(|line| line.contains("REACHED")).collect();
    assert!(reached.is_empty() && report.stdout.matches(": refused").count() > 60, "{reached:#?}");
    assert_eq!(report.sandbox.as_deref(), Some("full"));
}

#[tokio::test]
async fn only_granted_hosts_are_reached_and_through_the_guard() {
    let (server, other) = (server::start(), server::start());
    let source = "import urllib.request\nprint(urllib.request.urlopen(CONTEXT['url']).read().decode())";
    let hosts = vec![HostPattern::try_from(server.clone()).expect("a host")];
    let ask = |url: String, hosts: &[HostPattern]| {
        run(Job { context: json!({ "url": url }), hosts: hosts.to_vec(), ..native(source) })
    };
    expect(&ask(format!("{server}/hello"), &hosts).await, "hello\n", Some(0), None);
    let refused = ask(format!("{other}/hello"), &hosts).await;
    expect(&refused, "", Some(1), None);
    assert!(refused.stderr.contains("HTTP Error 403"), "{refused:#?}");
    let alone = ask(format!("{server}/hello"), &[]).await;
    expect(&alone, "", Some(1), None);
    // Not around the proxy either.
    let source = "import http.client\nhttp.client.HTTPConnection(CONTEXT['host']).request('GET', '/hello')";
    let host = server.trim_start_matches("http://");
    let around = run(Job { context: json!({ "host": host }), hosts, ..native(source) }).await;
    expect(&around, "", Some(1), None);
    assert!(around.stderr.contains("Connection refused"), "{around:#?}");
}

#[tokio::test]
async fn values_come_back_typed() {
    let png =
        "import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('iVBORw0KGgoAAAANSUhEUg==')\n";
    let table = "class T:\n    columns = ['a', 'b']\n    def itertuples(self, index, name): return iter([(1, 'x')])\n    \
                 def __len__(self): return 1\n";
    let source = format!(
        "{png}{table}class S:\n    def _repr_svg_(self): return '<svg/>'\n\
         display(P(), S(), T(), {{'a': [1, None]}})\nobject"
    );
    let rich = |source: &str| Job { rich: true, ..native(source) };
    let report = run(rich(&source)).await;
    expect(&report, "", Some(0), None);
    let expected = [
        JobOutput::Png { base64: "iVBORw0KGgoAAAANSUhEUg==".into() },
        JobOutput::Svg { text: "<svg/>".into() },
        JobOutput::Table {
            columns: vec!["a".into(), "b".into()],
            rows: vec![vec![json!(1), json!("x")]],
            rows_total: 1,
        },
        JobOutput::Json { value: json!({ "a": [1, null] }) },
        JobOutput::Text { text: "<class 'object'>".into() },
    ];
    assert_eq!(report.outputs, expected);
    // The same in WebAssembly.
    let wasm = run(Job { rich: true, ..Job::of(Code::Python(source)) }).await;
    assert_eq!((wasm.outputs, wasm.sandbox), (report.outputs, None));
    assert!(run(native("1")).await.outputs.is_empty(), "only where they are asked for");

    let report = run(rich("1\nNone")).await;
    assert_eq!(report.outputs, []);
    let report = run(rich("display(1)\nraise ValueError")).await;
    assert_eq!((report.outputs.len(), report.exit_code), (1, Some(1)));
    let report = run(within(rich("display(1)\nwhile True: pass"), |limits| limits.timeout_ms = 1_500)).await;
    assert_eq!((report.outputs.len(), report.limit.as_deref()), (1, Some("timeout_ms")));
    let report = run(rich("for n in range(150): display(n)")).await;
    assert!(report.outputs.len() == 100 && report.truncated, "{}", report.outputs.len());
    // Outputs that a job makes up are its own, and bounded.
    let report =
        run(rich("import os\nos.remove('../tmp/job/outputs')\nos.symlink('/etc/passwd', '../tmp/job/outputs')")).await;
    assert!(report.success && report.outputs.is_empty(), "{report:#?}");
}

/// A library that draws as matplotlib does, since none is installed for tests.
#[tokio::test]
async fn open_figures_come_back_as_pictures() {
    let place = tempfile::tempdir().expect("a directory");
    let venv = environment(place.path());
    let site = fs::read_dir(venv.join("lib")).expect("ours").next().expect("one").expect("ours").path();
    let package = site.join("site-packages/matplotlib");
    fs::create_dir(&package).expect("ours");
    fs::write(package.join("__init__.py"), "").expect("ours");
    let figure = "import base64\nclass Figure:\n    def savefig(self, file, format):\n        \
                  file.write(base64.b64decode('iVBORw0KGgoAAAANSUhEUg=='))\n";
    fs::write(package.join("figure.py"), figure).expect("ours");
    let pyplot = "from .figure import Figure\n_open = {}\ndef figure(n=None):\n    n = n or len(_open) + 1\n    \
                  return _open.setdefault(n, Figure())\ndef get_fignums(): return sorted(_open)\ndef close(n): _open.clear()\n";
    fs::write(package.join("pyplot.py"), pyplot).expect("ours");
    let rich = |source: &str| with_venv(Job { rich: true, ..native(source) }, &venv);
    let report = run(rich("import matplotlib.pyplot as plt\nplt.figure()\nplt.figure()\nNone")).await;
    assert_eq!(report.outputs.len(), 2, "{report:#?}");
    let report = run(rich("import matplotlib.pyplot as plt\nplt.figure()")).await;
    assert_eq!(report.outputs.len(), 1, "shown once: {report:#?}");
}

#[tokio::test]
async fn a_check_runs_its_tests_in_a_directory_that_it_only_reads() {
    let place = tempfile::tempdir().expect("a directory");
    let tree = place.path().canonicalize().expect("its name");
    fs::write(tree.join("work.py"), "def add(a, b):\n    return a + b\n").expect("ours");
    fs::write(tree.join("leaves.py"), "import sys\nsys.exit(0)\n").expect("ours");
    fs::write(tree.join("leaves_at_once.py"), "import os\nos._exit(0)\n").expect("ours");
    let check = |source: &str| {
        let grant = DirectoryGrant { guest: tree.display().to_string(), host: tree.clone(), access: Access::Read };
        let runtime = NativeRuntime { directory: Some(tree.clone()), is_check: true, ..NativeRuntime::default() };
        let files = [("helper.py".to_owned(), "THREE = 3".to_owned())].into();
        Job { runtime: Runtime::Native(runtime), files, directories: vec![grant], ..native(source) }
    };
    let sum = "import work, helper\ndef test_sum():\n    assert work.add(1, 2) == helper.THREE";
    expect(&run(check(sum)).await, "1 test passed\n", Some(0), None);
    let wrong = run(check("import work\ndef test_sum():\n    assert work.add(1, 2) == 4")).await;
    expect(&wrong, "", Some(1), None);
    assert!(wrong.stderr.contains("assert 3 == 4"), "{wrong:#?}");
    expect(&run(check("import sys\nsys.exit(0)")).await, "", Some(0), None);
    for leaves in ["import leaves", "import leaves_at_once"] {
        let left = run(check(leaves)).await;
        expect(&left, "", Some(1), None);
        assert!(left.stderr.contains("the work ended the check before it was through"), "{left:#?}");
    }
    // A process that the check starts ends as it is told to.
    let forks = "import os\ndef test_x():\n    pid = os.fork()\n    if pid == 0: os._exit(7)\n    \
                 assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7";
    expect(&run(check(forks)).await, "1 test passed\n", Some(0), None);
    expect(&run(check("open('new.py', 'w')")).await, "", Some(1), None);
}

#[tokio::test]
async fn what_cannot_run_natively_is_refused_with_what_to_do() {
    let refused = |job: Job| async { EXECUTOR.run(job).await.expect_err("it is refused").to_string() };
    let javascript = Job { code: Code::JavaScript("1".into()), ..native("") };
    assert!(refused(javascript).await.contains("only Python runs natively"));
    let none = with_venv(native("1"), Path::new("/nowhere/venv"));
    assert!(refused(none).await.contains("python3 -m venv /nowhere/venv"));
    assert!(refused(native(&"x".repeat(1_000_001))).await.contains("at most 1000000 are run"));
}

#[test]
fn what_native_code_prints_is_shown_while_it_runs() {
    let lab = Lab::empty();
    let out = lab.path("out");
    fs::create_dir(&out).expect("ours");
    let source = format!(
        "import os, sys, time\nprint('Zoë')\nprint('warned', file=sys.stderr)\n\
         while not os.path.exists('{0}/go'): time.sleep(0.01)\nprint('last')\n",
        out.display()
    );
    let file = lab.path("waits.py");
    fs::write(&file, source).expect("ours");
    let grant = format!("{0}:{0}:ro", out.display());
    let file = file.to_str().expect("plain");
    let mut run = lab.start(&["exec", file, "--runtime", "native", "--dir", &grant]);
    run.wait_for("Zoë\n");
    run.wait_for("warned\n");
    assert!(run.is_running() && !run.printed().contains("last"), "{}", run.printed());
    fs::write(out.join("go"), "").expect("ours");
    let ran = run.wait().expect(0);
    assert_eq!(ran.stdout, "Zoë\nlast\n", "nothing is printed twice");
    assert_eq!(ran.stderr.matches("warned\n").count(), 1, "{}", ran.said());
}

#[test]
fn output_of_native_code_that_is_cut_is_printed_as_the_report_has_it() {
    let lab = Lab::empty();
    let file = lab.path("long.py");
    fs::write(&file, "print('a' * 300, end='')\nprint('b' * 300, end='')").expect("ours");
    let args = ["exec", file.to_str().expect("plain"), "--runtime", "native", "--output-bytes-max", "100"];
    let report = lab.json(&args);
    let expected = format!("{}\n[500 bytes left out]\n{}", "a".repeat(50), "b".repeat(50));
    assert_eq!(report["stdout"], expected, "{report}");
    assert_eq!(lab.run(&args).expect(0).stdout, expected);
}

#[test]
fn an_interrupted_command_leaves_nothing_behind() {
    let lab = Lab::empty();
    let (temporary, file) = (lab.path("temporary"), lab.path("job.py"));
    fs::create_dir(&temporary).expect("ours");
    fs::write(&file, "import time\ndisplay(1)\ntime.sleep(60)").expect("ours");
    let (file, place) = (file.display().to_string(), temporary.display().to_string());
    let args = ["exec", file.as_str(), "--runtime", "native", "--rich"];
    let mut started = lab.start_with(&args, &[("TMPDIR", place.as_str())]);
    let has_shown =
        |job: fs::DirEntry| fs::metadata(job.path().join("tmp/job/outputs")).is_ok_and(|outputs| outputs.len() > 0);
    while !fs::read_dir(&temporary).expect("ours").flatten().any(has_shown) {
        assert!(started.is_running(), "{}", started.printed());
        std::thread::sleep(Duration::from_millis(10));
    }
    started.interrupt();
    started.wait().expect(130);
    assert_eq!(fs::read_dir(&temporary).expect("ours").count(), 0, "directories of the job");
}

#[test]
fn the_command_runs_native_code_at_the_level_that_there_is() {
    let lab = Lab::empty();
    let file = lab.path("job.py");
    fs::write(&file, "print(CONTEXT['n'] + 1)\nCONTEXT").expect("ours");
    let file = file.to_str().expect("plain");
    let native = ["exec", file, "--context", "{\"n\": 1}", "--runtime", "native"];
    assert_eq!(lab.run(&native).expect(0).stdout, "2\n");
    let rich = [&native[..], &["--rich"][..]].concat();
    assert_eq!(lab.run(&rich).expect(0).stdout, "2\n{\"n\":1}\n");
    let report = lab.json(&rich);
    assert_eq!((&report["sandbox"], &report["outputs"][0]["kind"]), (&json!("full"), &json!("json")), "{report:#}");

    // Without namespaces nothing runs but what is accepted by name, and never with a host.
    let through = common::without_namespaces();
    let refused = lab.run_through(&through, &native).expect(125);
    assert!(refused.stderr.contains("does not give the sandbox level `full`"), "{}", refused.said());
    let landlock = [&["--json"][..], &native[..], &["--sandbox-min", "landlock"][..]].concat();
    let ran = lab.run_through(&through, &landlock).expect(0);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&report["sandbox"], &report["stdout"]), (&json!("landlock"), &json!("2\n")), "{report:#}");
    let with_host = [&landlock[..], &["--allow-host", "http://127.0.0.1:9"][..]].concat();
    lab.run_through(&through, &with_host).expect(125);

    for (args, says) in [
        (&["--venv", "/tmp"][..], "add --runtime native"),
        (&["--sandbox-min", "full"][..], "add --runtime native"),
        (&["--runtime", "native", "--fuel-max", "1"][..], "leave out --fuel-max"),
        (&["--runtime", "native", "--venv", "/usr"][..], "is no virtual environment"),
        (&["--runtime", "native", "--lang", "js"][..], "only Python runs natively"),
    ] {
        let refused = lab.run(&[&["exec", file][..], args].concat()).expect(125);
        assert!(refused.stderr.contains(says), "{says}: {}", refused.said());
    }
    lab.run(&["exec", file, "--runtime", "native", "--sandbox-min", "most"]).expect(2);
}
