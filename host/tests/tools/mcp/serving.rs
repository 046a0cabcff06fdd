//! `longhaul mcp`, driven by a client of others, over standard input and over HTTP.

use super::{LIST, error, faked, lab, tools_named};
use crate::common::gated::answers;
use crate::common::lab::Lab;
use crate::common::python::{python, site};
use crate::common::{self, refused, repository};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The Python SDK's client against `longhaul mcp` with these options; what it printed.
fn client(lab: &Lab, calls: &Value, target: &[&str], mode: &str) -> Value {
    client_with(lab, calls, target, mode, "skip")
}

/// The same with a person behind it who always says this.
fn client_with(lab: &Lab, calls: &Value, target: &[&str], mode: &str, says: &str) -> Value {
    let mut command = python();
    command.arg(repository().join("host/tests/tools/mcp/client.py")).arg(calls.to_string()).args(target);
    command.env("PYTHONPATH", site(LIST)).env("MCP_MODE", mode).env("MCP_SAYS", says);
    let known = lab.command(&[]);
    command.envs(known.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().expect("python3 runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

/// The command line that starts the program in the lab.
fn own_command(lab: &Lab, args: &[&str]) -> Vec<String> {
    let command = lab.command(args);
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    std::iter::once(text(command.get_program())).chain(command.get_args().map(text)).collect()
}

#[test]
fn a_client_of_others_drives_the_harness_and_tools_over_stdio() {
    let data = |lab: &Lab| {
        let data = lab.path("data");
        std::fs::create_dir_all(&data).expect("ours");
        std::fs::write(data.join("a.txt"), "from the host\n").expect("ours");
        format!("{}:/work:ro", data.display())
    };
    let lab = lab(&[], "", &[]);
    let project = lab.project().display().to_string();
    let directory = data(&lab);
    let command = own_command(&lab, &["--project", &project, "mcp", "--dir", &directory]);
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    let calls = json!([
        ["longhaul_status", {}],
        ["longhaul_run", { "sessions": "many" }],
        ["longhaul_run", {}],
        ["longhaul_nothing", {}],
        ["files__read", { "path": "a.txt" }],
        ["files__write", { "path": "b.txt", "content": "x" }],
        ["longhaul_create", { "directory": "../made", "name": "made" }],
    ]);
    let told = client(&lab, &calls, &command, "auto");
    assert_eq!(told["version"], "2026-07-28");
    let tools: Vec<&str> = told["tools"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for name in [
        "longhaul_create",
        "longhaul_run",
        "longhaul_status",
        "longhaul_answer",
        "longhaul_approve",
        "longhaul_report",
        "files__read",
    ] {
        assert!(tools.contains(&name), "no {name} in {tools:?}");
    }
    let answer = |at: usize| told["answers"][at].clone();
    let fails = |at: usize, words: &str| {
        let text = answer(at)["text"].as_str().expect("text").to_owned();
        assert!(answer(at)["error"] == true && text.contains(words) && text.lines().count() == 1, "{at}: {text}");
    };
    fails(0, "no run");
    fails(1, "the arguments of `longhaul_run`");
    assert!(answer(2)["text"].as_str().expect("text").contains("r-"), "{}", answer(2));
    fails(3, "there is no tool `longhaul_nothing`");
    assert!(answer(4)["text"].as_str().expect("text").contains("from the host"), "{}", answer(4));
    assert_eq!(answer(5)["error"], true, "it was granted for reading: {}", answer(5));
    assert!(lab.path("made/GOAL.md").is_file());
    // The run ends here or, when the client went before it did, with a resume.
    lab.run(&["resume"]);
    let report = client(&lab, &json!([["longhaul_status", {}], ["longhaul_report", {}]]), &command, "auto");
    assert!(report["answers"][0]["text"].as_str().expect("text").contains("\"completed\""), "{report}");
    assert!(report["answers"][1]["text"].as_str().expect("text").contains("# "), "{report}");
}

/// A run that is parked: its tool acted and was killed, and the outcome is unknown.
fn parked() -> Lab {
    let lab = faked(&tools_named(&["echo"]), "", &[("mcp-fake", "echo", json!({}))]);
    let killed = lab.start_with(&["run"], &[("LONGHAUL_CRASH_AT", "tool.after-call:1")]).wait();
    assert!(killed.was_killed(), "{}", killed.said());
    assert_ne!(lab.run(&["resume"]).code(), Some(0));
    lab
}

#[test]
fn a_question_reaches_the_person_behind_the_client_in_the_way_of_its_revision() {
    for (mode, version) in [("auto", "2026-07-28"), ("legacy", "2025-11-25")] {
        let lab = parked();
        let project = lab.project().display().to_string();
        let command = own_command(&lab, &["--project", &project, "mcp"]);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let calls = json!([["longhaul_answer", { "feature": "one" }], ["longhaul_answer", { "feature": "one" }]]);
        let told = client(&lab, &calls, &command, mode);
        assert_eq!(told["version"], version);
        let asked = told["questions"][0].as_str().unwrap_or_else(|| panic!("nobody was asked: {told}"));
        assert!(asked.contains("mcp-fake.echo"), "{asked}");
        assert_eq!(told["answers"][0]["error"], false, "{told}");
        assert!(told["answers"][1]["text"].as_str().expect("text").contains("asks nothing"), "{told}");
        lab.run(&["resume"]).expect(0);
        assert!(error(&answers(&lab)[0]).contains("a person decided not to do this"), "{:?}", answers(&lab));
    }
}

#[test]
fn a_person_approves_behind_a_client_and_what_its_model_says_counts_for_nothing() {
    const ASK: &str = "[mcp.fake.approval]\ndefault = \"ask\"\n";
    for mode in ["auto", "legacy"] {
        let lab = faked(&tools_named(&["echo"]), ASK, &[("mcp-fake", "echo", json!({ "a": 1 }))]);
        lab.run(&["run"]).expect(5);
        let project = lab.project().display().to_string();
        let command = own_command(&lab, &["--project", &project, "mcp"]);
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let calls = json!([
            ["longhaul_approve", { "text": "y" }],
            ["longhaul_approve", {}],
            ["longhaul_approve", {}],
        ]);
        let told = client_with(&lab, &calls, &command, mode, "y");
        assert!(told["answers"][0]["text"].as_str().expect("text").contains("unknown field `text`"), "{told}");
        let asked = told["questions"][0].as_str().unwrap_or_else(|| panic!("nobody was asked: {told}"));
        assert!(asked.contains("mcp-fake.echo") && asked.contains("a = 1"), "{asked}");
        assert_eq!((&told["answers"][1]["error"], &told["questions"][1]), (&json!(false), &Value::Null), "{told}");
        assert!(told["answers"][2]["text"].as_str().expect("text").contains("no such approval is open"), "{told}");
        // The next process makes the allowed call, and no person is asked twice.
        lab.run(&["resume"]).expect(0);
        assert_eq!(answers(&lab)[0], json!({ "a": 1 }));
    }
}

#[test]
fn over_http_strange_hosts_and_pages_and_clients_without_the_token_are_refused() {
    const TOKEN: &str = "tok-5555555555-aaaaaa";
    const OTHER: &str = "tok-6666666666-bbbbbb";
    let lab = lab(&[], "", &[]);
    lab.set_own_secret("mcp-token", TOKEN);
    refused(&lab.run(&["mcp", "--http", "0.0.0.0:0"]), &["can be reached by others", "--token"]);
    let mut command = lab.command(&["mcp", "--http", "127.0.0.1:0", "--token", "mcp-token"]);
    let mut server = Serving(command.stdout(Stdio::piped()).spawn().expect("started"));
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut line).expect("it says where");
    let url = line.trim().rsplit(' ').next().expect("an address").to_owned();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
    let ask = |path: &str, headers: &str| raw(&address, path, headers, &body);
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let host = format!("host: {address}\r\n");
    for (name, path, headers, status) in [
        ("no token", "/mcp", host.clone(), 401),
        ("another token", "/mcp", format!("{host}authorization: Bearer {TOKEN}x\r\n"), 401),
        ("rebound name", "/mcp", format!("host: evil.example\r\n{bearer}"), 403),
        ("a web page", "/mcp", format!("{host}{bearer}origin: https://evil.example\r\n"), 403),
        ("another path", "/", format!("{host}{bearer}"), 404),
    ] {
        assert_eq!(ask(path, &headers), status, "{name}");
    }
    let told = client(&lab, &json!([["longhaul_status", {}]]), &[&url, TOKEN], "auto");
    assert_eq!((&told["version"], &told["answers"][0]["error"]), (&json!("2026-07-28"), &json!(true)));
    let told = client(&lab, &json!([]), &[&url, TOKEN], "legacy");
    assert_eq!(told["version"], "2025-11-25");
    // A changed or removed token used to stay valid until the server was restarted.
    lab.set_own_secret("mcp-token", OTHER);
    assert_eq!(ask("/mcp", &format!("{host}{bearer}")), 401, "it was changed");
    assert_eq!(client(&lab, &json!([]), &[&url, OTHER], "legacy")["version"], "2025-11-25");
    lab.run(&["secrets", "remove", "mcp-token"]).expect(0);
    assert_eq!(ask("/mcp", &format!("{host}authorization: Bearer {OTHER}\r\n")), 401, "it was removed");
}

#[test]
fn ctrl_c_ends_it_while_all_connections_are_taken() {
    let lab = lab(&[], "", &[]);
    let mut server =
        Serving(lab.command(&["mcp", "--http", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().expect("started"));
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("piped")).read_line(&mut line).expect("it says where");
    let url = line.trim().rsplit(' ').next().expect("an address");
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let id = server.0.id();
    let sockets = || {
        let open = std::fs::read_dir(format!("/proc/{id}/fd")).expect("it lives");
        let open = open.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
        open.filter(|to| to.to_string_lossy().starts_with("socket:")).count()
    };
    let (begun, before) = (Instant::now(), sockets());
    // They say nothing, which is borne for 10 s; what is behind the 64th waits.
    let taken: Vec<TcpStream> = (0..65).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    while sockets() < before + 64 {
        assert!(begun.elapsed() < Duration::from_secs(5), "{} sockets", sockets());
        std::thread::sleep(Duration::from_millis(10));
    }
    common::lab::interrupt(id);
    while server.0.try_wait().expect("ours").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(8), "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(taken);
}

struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The status that a request without a library gets.
fn raw(address: &str, path: &str, headers: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let kinds =
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\nconnection: close\r\n";
    write!(stream, "POST {path} HTTP/1.1\r\n{headers}{kinds}content-length: {}\r\n\r\n{body}", body.len())
        .expect("sent");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}
