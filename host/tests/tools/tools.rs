//! The shipped tools as an agent of a run has them: what they answer, and what they are kept from.

use crate::common;
use crate::common::gated::{answer, answers, the_open};
use crate::common::guests::guest_of_text;
use crate::common::in_toml;
use crate::common::lab::Lab;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;

/// A project whose agent makes these calls, one after the other; its only feature passes whatever is done.
fn lab(tools: &str, calls: &Value) -> Lab {
    let names: Vec<&str> = tools.lines().filter_map(|line| line.strip_prefix("[tools.")?.strip_suffix(']')).collect();
    let config = CONFIG
        .replace("{names}", &json!(names).to_string())
        .replace("{settings}", &in_toml(&json!({ "calls": calls })))
        .replace("{tools}", tools);
    Lab::new(&config, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

const CONFIG: &str = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = {names}
settings = {settings}

{tools}

[evaluator]
plugin = "lenient"

[run.limits]
iterations_max = 1
"#;

fn call(tool: &str, function: &str, arguments: &Value) -> Value {
    json!({ "tool": tool, "function": function, "arguments": arguments })
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

#[test]
fn an_agent_runs_a_program_searches_and_looks_at_its_work() {
    let tools = "[tools.shell]\nplugin = \"builtin:shell\"\nallow = [\"ls -a .\"]\nsettings = { programs = [\"sh\"], env = { GREETING = \"hello\" } }\n[tools.search]\nplugin = \"builtin:search\"\n[tools.git]\nplugin = \"builtin:git\"\n";
    let calls = json!([
        call(
            "shell",
            "run",
            &json!({ "argv": ["sh", "-c", "echo $GREETING > made.txt; echo done; env | grep -c LONGHAUL"] })
        ),
        call("shell", "run", &json!({ "command": "ls -a ." })),
        call("shell", "run", &json!({ "command": "id" })),
        call("shell", "run", &json!({ "command": "ls -a .; id" })),
        call("search", "text", &json!({ "pattern": "^hel+o$" })),
        call("search", "names", &json!({ "files": "*.md" })),
        call("git", "status", &json!({})),
        call("git", "diff", &json!({})),
        call("git", "commit", &json!({ "message": "half way" })),
        call("git", "log", &json!({})),
    ]);
    let lab = lab(tools, &calls);
    // No person is asked about a command that the operator listed, nor about one that would be refused.
    lab.run(&["run"]).expect(5);
    answer(&lab, &the_open(&lab), "y").expect(0);
    lab.run(&["resume"]).expect(0);
    let answers = answers(&lab);
    let [made, listed, refused, chained, found, names, status, diff, kept, log] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((&made["stdout"], &made["exit_code"]), (&json!("done\n0\n"), &json!(1)), "{made}");
    assert!(text(&listed["stdout"]).contains("made.txt") && !text(&listed["stdout"]).contains(".git\n"), "{listed}");
    assert!(text(&refused["error"]).contains("[tools.shell.settings] programs = [\"id\"]"), "{refused}");
    assert!(text(&chained["error"]).contains("a chain of commands"), "{chained}");
    assert_eq!((&found["matches"][0]["path"], &found["matches"][0]["text"]), (&json!("made.txt"), &json!("hello")));
    assert_eq!(names["files"][0]["path"], "GOAL.md", "{names}");
    assert_eq!((&status["branch"], &status["changes"][0]["path"]), (&json!("longhaul/kept"), &json!("made.txt")));
    assert!(text(&diff["patch"]).contains("+hello"), "{diff}");
    let name = text(&kept["checkpoint"]);
    assert!(name.starts_with("refs/longhaul/checkpoints/r-") && name.ends_with("/1"), "{kept}");
    assert_eq!(lab.git(&["show", &format!("{name}:made.txt")]).trim(), "hello");
    assert_eq!(log["checkpoints"][0]["subject"], "half way", "{log}");
    // The harness committed what the check passed; the checkpoint is not on the branch.
    let commits = lab.git(&["log", "--format=%s", "main..longhaul/kept"]);
    assert!(!commits.contains("half way") && commits.lines().count() == 1, "{commits}");
}

/// A server of one page, one picture and some traps, until its lab is gone. Answers its address.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let own = address.clone();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let mut head = [0; 8_192];
            let read = connection.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            let answer = |status: &str, more: &str, body: &[u8]| {
                let mut answer =
                    format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\nconnection: close\r\n\r\n", body.len())
                        .into_bytes();
                answer.extend(body);
                answer
            };
            let html = "content-type: text/html\r\n";
            let told = match path.as_str() {
                "/page" => answer("200 OK", html, b"<h1>Head</h1><script>evil()</script><p>Words &amp; more."),
                "/json" => answer("200 OK", "content-type: application/json\r\n", b"{\"a\": [1, 2]}"),
                "/hop" => answer("302 Found", "location: /page\r\n", b""),
                "/round" => answer("302 Found", "location: /round\r\n", b""),
                "/metadata" => answer("302 Found", "location: http://169.254.169.254/latest\r\n", b""),
                "/elsewhere" => answer("302 Found", "location: http://localhost:1/\r\n", b""),
                "/file" => answer("302 Found", "location: file:///etc/passwd\r\n", b""),
                "/zipped" => answer("200 OK", "content-type: text/html\r\ncontent-encoding: gzip\r\n", b"\x1f\x8b"),
                "/deep" => answer("200 OK", html, "<div>".repeat(50_000).as_bytes()),
                "/long" => answer("200 OK", "content-type: text/plain\r\n", &vec![b'x'; 2_000_000]),
                "/binary" => answer("200 OK", "content-type: application/octet-stream\r\n", &[0; 100]),
                "/image" => answer("200 OK", "content-type: text/plain\r\n", &png(3, 2)),
                "/image-bomb" => answer("200 OK", "content-type: image/png\r\n", &png(100_000, 100_000)),
                "/no-image" => answer("200 OK", "content-type: image/png\r\n", b"<html>"),
                "/large-image" => {
                    answer("200 OK", "content-type: image/png\r\n", &[png(3, 2), vec![0; 3_000_000]].concat())
                }
                "/post" => answer("200 OK", "content-type: text/plain\r\n", head.as_bytes()),
                _ => answer("404 Not Found", "", own.as_bytes()),
            };
            let _ = connection.write_all(&told);
        }
    });
    address
}

/// The head of a picture of that size.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn pages_and_pictures_are_fetched_and_attempts_to_get_elsewhere_are_refused() {
    let server = server();
    let tools = format!(
        "[tools.web]\nplugin = \"http-fetch\"\nhosts = [\"http://{server}\"]\nconfirm_effects = true\napproval.when_heard = \"allow\"\n[tools.picture]\nplugin = \"fetch-image\"\nhosts = [\"http://{server}\"]\nconfirm_effects = true\n"
    );
    // A path, what comes of it, and where that is in the answer.
    let pages: &[(&str, &str, &str)] = &[
        ("/page", "text", "Words & more."),
        ("/hop", "text", "Words & more."),
        ("/long", "bytes", "262144"),
        ("/round", "error", "redirected more than 5 times"),
        ("/metadata", "error", "169.254.169.254"),
        ("/elsewhere", "error", "localhost:1"),
        ("/file", "error", "which is no web address"),
        ("/zipped", "error", "compressed as `gzip`"),
        ("/deep", "error", "within each other"),
        ("/binary", "error", "is binary"),
        ("/none", "status", "404"),
    ];
    let pictures: &[(&str, &str, &str)] = &[
        ("/image", "data_url", "data:image/png;base64,iVBOR"),
        ("/image", "width", "3"),
        ("/image-bomb", "error", "pixels is not taken"),
        ("/no-image", "error", "these bytes are no picture"),
        ("/large-image", "error", "body_bytes_max"),
        ("/metadata", "error", "169.254.169.254"),
    ];
    let url = |path: &str| json!({ "url": format!("http://{server}{path}") });
    let mut calls: Vec<Value> = pages.iter().map(|(path, ..)| call("web", "get", &url(path))).collect();
    calls.extend(pictures.iter().map(|(path, ..)| call("picture", "fetch", &url(path))));
    let more = [
        (call("web", "get", &json!({ "url": "https://example.com/" })), "error", "hosts = [\"https://example.com\"]"),
        (call("web", "get", &json!({ "url": format!("http://u:p@{server}/page") })), "error", "a user in it"),
        (
            call("web", "get", &json!({ "url": format!("http://{server}/page"), "headers": { "Host": "x" } })),
            "error",
            "is the host's to send",
        ),
        (
            call("web", "get", &json!({ "url": format!("http://{server}/page"), "headers": { "a": "b\r\nc: d" } })),
            "error",
            "control character",
        ),
        (call("web", "get", &url("/json")), "json", "{\"a\":[1,2]}"),
        (
            call("web", "post", &json!({ "url": format!("http://{server}/post"), "json": { "b": 1 } })),
            "text",
            "POST /post",
        ),
    ];
    calls.extend(more.iter().map(|(call, ..)| call.clone()));
    let lab = lab(&tools, &json!(calls));
    lab.run(&["run"]).expect(0);
    let answers = answers(&lab);
    let expected = pages.iter().chain(pictures).map(|(name, field, told)| (*name, *field, *told));
    let expected = expected.chain(more.iter().map(|(_, field, told)| ("more", *field, *told)));
    assert_eq!(answers.len(), pages.len() + pictures.len() + more.len());
    for (answer, (name, field, told)) in answers.iter().zip(expected) {
        let found = answer[field].as_str().map_or_else(|| answer[field].to_string(), str::to_owned);
        assert!(found.contains(told), "{name}: {field} of {answer:.500}");
    }
}

/// Processes that were started with these words.
fn running(words: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("there").filter_map(Result::ok);
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").starts_with(words)).count()
}

/// Waits until there are that many, for at most some seconds.
fn wait_for(words: &str, count: usize) {
    for _ in 0..500 {
        if running(words) == count {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("{} of `{words}` are running, not {count}", running(words));
}

#[test]
fn a_program_dies_with_the_host_and_is_asked_about_before_it_is_started_again() {
    let tools = "[tools.shell]\nplugin = \"builtin:shell\"\nsettings = { programs = [\"sh\"] }\n";
    let script = "(setsid sleep 8880001 &); echo once >> times.txt; sleep 8880002";
    let lab = lab(tools, &json!([call("shell", "run", &json!({ "argv": ["sh", "-c", script] }))]));
    lab.run(&["run"]).expect(5);
    assert_eq!(running("sleep 888000"), 0, "it was not approved yet");
    answer(&lab, &the_open(&lab), "y").expect(0);
    let mut started = lab.start(&["resume"]);
    wait_for("sleep 8880001", 1);
    wait_for("sleep 8880002", 1);
    started.kill();
    started.wait();
    wait_for("sleep 888000", 0);
    let resumed = lab.run(&["resume"]).expect(5);
    assert!(resumed.said().contains("shell.run"), "{}", resumed.said());
    assert_eq!(running("sleep 888000"), 0, "it was not started again");
    lab.run(&["answer", "--skip"]).expect(0);
    lab.run(&["resume"]).expect(0);
    assert_eq!(lab.git(&["show", "longhaul/kept:times.txt"]).trim(), "once");
}

/// Less than the full sandbox is accepted by name, and never passed over in silence: also where another process goes
/// on.
#[test]
fn a_program_that_less_than_the_full_sandbox_held_is_told_once_in_a_run_and_in_its_report() {
    let tools = "[tools.shell]\nplugin = \"builtin:shell\"\nallow = [\"ls -a .\"]\n\
                 approval = { when_heard = \"allow\" }\n\
                 settings = { programs = [\"sh\"], sandbox_min = \"none\" }\n";
    let calls = json!([
        call("shell", "run", &json!({ "command": "ls -a ." })),
        call("shell", "run", &json!({ "argv": ["sh", "-c", "echo more"] })),
    ]);
    let lab = lab(tools, &calls);
    // Without mounts of its own a program of root's has to reach its tree by its path.
    std::fs::set_permissions(lab.path("."), std::os::unix::fs::PermissionsExt::from_mode(0o711)).expect("ours");
    lab.run_through(&common::without_namespaces(), &["run"]).expect(5);
    answer(&lab, &the_open(&lab), "y").expect(0);
    lab.run_through(&common::without_namespaces(), &["resume"]).expect(0);
    assert!(answers(&lab).iter().all(|answer| answer["sandbox"].is_string()), "{:?}", answers(&lab));
    let told = |text: &str| text.contains("the tool `shell` ran programs in the sandbox level `");
    let events = lab.run(&["--json", "attach"]).expect(0).stdout;
    assert_eq!(events.lines().filter(|line| line.contains("\"warning\"") && told(line)).count(), 1, "{events}");
    assert!(told(&lab.run(&["report", "--format", "json"]).expect(0).stdout));
    lab.run(&["replay"]).expect(0);
}

#[test]
fn native_python_works_in_the_tree_which_it_only_reads() {
    let tools = "[tools.python]\nplugin = \"python\"\nruntime = \"native\"\nsettings = { timeout_ms = 60000 }\n";
    let look = "import os, sys\nprint(os.path.exists('GOAL.md'), sys.stdin.read(), CONTEXT['n'])";
    let check = "import helper\ndef test_x(): assert helper.x == 1";
    let calls = json!([
        call("python", "run", &json!({ "source": look, "stdin": "in", "context": { "n": 2 } })),
        call("python", "run", &json!({ "source": "open('new.txt', 'w')" })),
        call("python", "check", &json!({ "source": check, "files": { "helper.py": "x = 1" } })),
        call("python", "check", &json!({ "source": check, "files": { "helper.py": "x = 2" } })),
        call("python", "run", &json!({ "source": "while True: pass", "timeout": 1.5 })),
        call("python", "run", &json!({ "source": "1", "files": { "../up.py": "" } })),
        call("python", "exec", &json!({ "source": "1" })),
    ]);
    let lab = lab(tools, &calls);
    lab.run(&["run"]).expect(0);
    let answers = answers(&lab);
    let [looked, written, passed, failed, late, outside, unknown] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((&looked["stdout"], &looked["exit_code"]), (&json!("True in 2\n"), &json!(0)), "{looked}");
    assert_eq!(written["exit_code"], 1, "{written}");
    assert_eq!((&passed["passed"], &failed["passed"]), (&json!(true), &json!(false)), "{passed} {failed}");
    assert_eq!(late["exit_code"], -1, "{late}");
    assert!(text(&late["stderr"]).ends_with("Timeout after 1.5 seconds\n"), "{late}");
    assert!(outside.to_string().contains("`../up.py` is no file name"), "{outside}");
    assert!(unknown.to_string().contains("exec"), "{unknown}");
    lab.run(&["replay"]).expect(0);
}

/// A tool that says who it is, whatever it is called with: in its output, and in its answer.
const STAND_IN: &str = r#";; tool
(import "wasi:cli/stdout@0.2.12" "get-stdout" (func $stdout (result i32)))
(import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush"
  (func $print (param i32 i32 i32 i32)))
(data (i32.const 2048) "the stand-in\0a")
(data (i32.const 2080) "run")
(data (i32.const 2096) "{\22type\22:\22object\22}")
(data (i32.const 4096) "ANSWER")
(func $describe (result i32)
  (i32.store (i32.const 600) (i32.const 2080)) (i32.store (i32.const 604) (i32.const 3))
  (i32.store (i32.const 608) (i32.const 2048)) (i32.store (i32.const 612) (i32.const 12))
  (i32.store (i32.const 616) (i32.const 2096)) (i32.store (i32.const 620) (i32.const 17))
  (i32.store (i32.const 512) (i32.const 2080)) (i32.store (i32.const 516) (i32.const 3))
  (i32.store (i32.const 520) (i32.const 2048)) (i32.store (i32.const 524) (i32.const 12))
  (i32.store (i32.const 528) (i32.const 600)) (i32.store (i32.const 532) (i32.const 1))
  (i32.const 512))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (call $print (call $stdout) (i32.const 2048) (i32.const 13) (i32.const 3000))
  (i32.const 4096) (i32.const LENGTH))
"#;

/// The component of [`STAND_IN`], whose answer a job, a step of a session, a step of a graph and an agent can read.
fn stand_in() -> Vec<u8> {
    let answer = json!({
        "exit_code": 0, "result": "the stand-in", "groups": [], "deleted": [], "reads": [], "all": false,
        "rebound": [], "files": [], "written": [], "unkept": [], "values": {}
    });
    let answer = answer.to_string();
    let text = STAND_IN.replace("LENGTH", &answer.len().to_string()).replace("ANSWER", &answer.replace('"', "\\22"));
    guest_of_text(&text)
}

#[test]
fn a_python_of_the_users_own_is_taken_by_code_sessions_graphs_and_agents_alike() {
    let lab = lab("[tools.python]\nplugin = \"python\"\n", &json!([call("python", "run", &json!({ "source": "1" }))]));
    let (own, job) = (lab.path("own"), lab.path("job.py"));
    std::fs::create_dir(&own).expect("ours");
    std::fs::write(own.join("python.wasm"), stand_in()).expect("ours");
    let source = "print('the shipped one')";
    std::fs::write(&job, source).expect("ours");
    let (job, shipped) = (job.to_str().expect("plain"), common::repository().join("target/plugins"));
    let searched = std::env::join_paths([own, shipped.clone(), shipped.join("tests")]).expect("no colon in it");
    let searched = [("LONGHAUL_PLUGINS", searched.to_str().expect("plain"))];
    let run = |args: &[&str]| lab.start_with(args, &searched).wait().expect(0);
    run(&["graph", "new", "sums"]);
    run(&["graph", "add", "sums", "one", "--source", source]);
    for args in [&["exec", job][..], &["exec", job, "--session", "kept"], &["graph", "run", "sums"]] {
        let stdout = run(args).stdout;
        assert!(stdout.contains("the stand-in") && !stdout.contains("the shipped one"), "{args:?}: {stdout}");
    }
    run(&["run"]);
    let answers = answers(&lab);
    assert_eq!(answers[0]["result"], "the stand-in", "{answers:?}");
}
