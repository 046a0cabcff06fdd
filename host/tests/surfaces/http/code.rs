//! Code that clients send: single jobs, native jobs and sessions.

use super::admission::ends_with_problem;
use crate::common::lab::Lab;
use crate::common::web::{Frame, Web, token};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn code_that_nobody_trusts_runs_and_sees_nothing() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let run = |body: Value| web.post("/api/v1/exec", &body);
    let source = "try:\n    open('/etc/passwd')\nexcept OSError:\n    print(sum(range(10)), CONTEXT['a'])";
    let report = run(json!({ "language": "python", "source": source, "context": { "a": 1 } })).expect(200).json();
    assert_eq!((&report["success"], &report["stdout"]), (&json!(true), &json!("45 1\n")), "{report:#}");
    let report =
        run(json!({ "language": "python", "source": "while True: pass", "timeout_ms": 300 })).expect(200).json();
    assert_eq!(
        (&report["success"], &report["limit"], &report["exit_code"]),
        (&json!(false), &json!("timeout_ms"), &Value::Null),
        "{report:#}"
    );
    assert_eq!(run(json!({ "language": "ruby", "source": "" })).expect(422).json()["field"], "language");
    assert_eq!(
        run(json!({ "language": "python", "source": "", "timeout_ms": 0 })).expect(422).json()["field"],
        "timeout_ms"
    );
    assert_eq!(
        run(json!({ "language": "python", "source": "", "hosts": ["nonsense"] })).expect(422).json()["field"],
        "hosts[0]"
    );
    run(json!({ "language": "python", "source": "x".repeat(1_000_001) })).expect(422);
}

#[test]
fn native_code_runs_in_the_full_sandbox_and_values_come_back_typed() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let run = |body: Value| web.post("/api/v1/exec", &body);
    for (runtime, sandbox) in [("wasm", Value::Null), ("native", json!("full"))] {
        let source = "print(1)\n{'a': [CONTEXT['n']]}";
        let body = json!({
            "language": "python", "source": source, "context": { "n": 2 }, "runtime": runtime, "rich": true
        });
        let report = run(body).expect(200).json();
        assert_eq!((&report["stdout"], &report["sandbox"]), (&json!("1\n"), &sandbox), "{report:#}");
        assert_eq!(report["outputs"], json!([{ "kind": "json", "value": { "a": [2] } }]));
    }
    for (field, wrong) in [
        ("runtime", json!({ "runtime": "bare" })),
        ("venv", json!({ "venv": "/usr" })),
        ("venv", json!({ "runtime": "native", "venv": "usr" })),
        ("fuel_max", json!({ "runtime": "native", "fuel_max": 1 })),
    ] {
        let mut body = json!({ "language": "python", "source": "" });
        body.as_object_mut().expect("an object").extend(wrong.as_object().expect("an object").clone());
        assert_eq!(run(body.clone()).expect(422).json()["field"], field, "{body}");
    }
}

#[test]
fn values_of_javascript_and_typescript_come_back_typed() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    for (language, source) in
        [("javascript", "display({ n: CONTEXT.n });\n[1]"), ("typescript", "display({ n: CONTEXT.n as number });\n[1]")]
    {
        let body = json!({ "language": language, "source": source, "context": { "n": 2 }, "rich": true });
        let report = web.post("/api/v1/exec", &body).expect(200).json();
        let outputs = json!([{ "kind": "json", "value": { "n": 2 } }, { "kind": "json", "value": [1] }]);
        assert_eq!(report["outputs"], outputs, "{language}: {report:#}");
    }
}

#[test]
fn a_session_of_code_is_kept_between_requests_listed_and_ended() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let run = |body: Value| web.post("/api/v1/exec", &body);
    let step = |source: &str| run(json!({ "language": "python", "source": source, "session": "work" }));
    step("x = [1]").expect(200);
    let report = step("x.append(2)\nx").expect(200).json();
    assert_eq!(report["outputs"], json!([{ "kind": "json", "value": [1, 2] }]), "{report:#}");
    assert_eq!((&report["session"]["steps"], &report["session"]["variables"]), (&json!(2), &json!(["x"])));
    let listed = web.get("/api/v1/exec/sessions").expect(200).json();
    assert_eq!((&listed["total"], &listed["items"][0]["name"]), (&json!(1), &json!("work")), "{listed:#}");
    run(json!({ "language": "javascript", "source": "1", "session": "work" })).expect(422);
    run(json!({ "language": "python", "source": "1", "session": "../work" })).expect(422);
    run(json!({ "language": "python", "source": "1", "session": "work", "runtime": "native" })).expect(409);
    let end = || web.ask("DELETE", "/api/v1/exec/sessions/work", &[], "");
    assert_eq!(end().expect(200).json()["name"], "work");
    end().expect(404);
    assert_eq!(web.get("/api/v1/exec/sessions").expect(200).json()["total"], 0);
}

#[test]
fn a_session_with_grants_is_gone_on_with_only_by_who_may_grant_them() {
    let lab = Lab::empty();
    let data = lab.path("data");
    std::fs::create_dir(&data).expect("ours");
    std::fs::write(data.join("secret"), "s3cret").expect("ours");
    let runs = token(&lab, "runs", &["--scope", "run"]);
    let admin = token(&lab, "admin", &["--scope", "admin"]);
    let web = Web::start(&lab);
    let step = |token: &str, session: &str, source: &str, is_granted: bool| {
        let header = format!("Authorization: Bearer {token}");
        let mut body = json!({ "language": "python", "source": source, "session": session });
        if is_granted {
            body["directories"] = json!([{ "host": data, "guest": "/data" }]);
        }
        web.raw("POST", "/api/v1/exec", &[&header, "Content-Type: application/json"], body.to_string().as_bytes())
    };
    step(&admin, "own", "kept = open('/data/secret').read()", true).expect(200);
    let refused = step(&runs, "own", "kept", false).expect(403).json();
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains("scope `admin`")), "{refused:#}");
    step(&admin, "own", "kept", false).expect(200);

    let trap = "class Trap:\n    def __reduce__(self):\n        return (print, ('loaded',))\ntrap = Trap()";
    step(&runs, "theirs", trap, false).expect(200);
    step(&admin, "theirs", "1", true).expect(409);
    step(&admin, "theirs", "1", false).expect(200);
    step(&runs, "theirs", "1", false).expect(200);
}

/// What was printed in these frames to standard output and standard error.
fn printed(frames: &[Frame]) -> [String; 2] {
    ["stdout", "stderr"].map(|name| {
        let of_stream = frames.iter().filter(|frame| frame.event == name);
        of_stream.map(|frame| frame.data["text"].as_str().expect("text")).collect()
    })
}

/// A report without what is measured, and without the state of a session.
fn unmeasured(mut report: Value) -> Value {
    let fields = report.as_object_mut().expect("an object");
    for field in ["duration_seconds", "fuel_used", "memory_bytes_peak", "session"] {
        fields.remove(field).unwrap_or_else(|| panic!("there is no {field}"));
    }
    report
}

#[test]
fn what_code_prints_streams_while_it_runs_and_ends_with_the_plain_answer() {
    let lab = Lab::empty();
    let out = lab.path("out");
    std::fs::create_dir(&out).expect("ours");
    let web = Web::start(&lab);
    let source = "import os, sys, time\nprint('first', 1)\nprint('warned', file=sys.stderr)\n\
                  while not os.path.exists(CONTEXT['go']): time.sleep(0.01)\nprint('last', end='')\n7";
    for (guest, more) in [
        (json!("/out"), json!({ "rich": true })),
        (json!("/out"), json!({ "session": "kept" })),
        (json!(out), json!({ "runtime": "native" })),
    ] {
        let go = format!("{}/go", guest.as_str().expect("a path"));
        let directories = json!([{ "host": out, "guest": guest }]);
        let mut body = json!({
            "language": "python", "source": source, "directories": directories, "context": { "go": go }
        });
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let mut stream = web.post_stream("/api/v1/exec", &body);
        let mut frames = Vec::new();
        while printed(&frames) != ["first 1\n", "warned\n"] {
            frames.push(stream.next().unwrap_or_else(|| panic!("{more}: it printed {frames:#?}")));
        }
        // The code waits for this file, so it has not ended before.
        std::fs::write(out.join("go"), "").expect("ours");
        frames.extend(stream.until(|frame| frame.event == "result"));
        assert_eq!(stream.next(), None, "nothing comes after the result");
        assert_eq!(printed(&frames), ["first 1\nlast", "warned\n"], "{more}: {frames:#?}");
        assert!(frames.iter().all(|frame| frame.id.is_none()), "{frames:#?}");
        let streamed = frames.pop().expect("the result").data;
        assert_eq!(streamed["session"]["name"], more["session"], "{streamed:#}");
        let plain = web.post("/api/v1/exec", &body).expect(200).json();
        assert_eq!(plain["stdout"], "first 1\nlast", "{plain:#}");
        assert_eq!(unmeasured(streamed), unmeasured(plain), "{more}");
        std::fs::remove_file(out.join("go")).expect("ours");
    }
}

#[test]
fn a_stream_of_code_ends_with_the_problem_of_a_job_that_cannot_be_run() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let long = json!({ "language": "python", "source": "x".repeat(1_000_001) });
    let named = json!({ "language": "python", "source": "1", "session": "../work" });
    for body in [long, named] {
        let plain = web.post("/api/v1/exec", &body).expect(422).json();
        let mut stream = web.post_stream("/api/v1/exec", &body);
        let problem = stream.next().expect("an event");
        assert_eq!((problem.event.as_str(), &problem.data), ("problem", &plain));
        assert_eq!(stream.next(), None, "nothing comes after it");
    }
    // A request that is wrong is refused as every other one, and one that prefers JSON gets JSON.
    let wrong = json!({ "language": "python", "source": "", "timeout_ms": 0 }).to_string();
    let wants = |accept: &str, body: &str| {
        let accept = format!("Accept: {accept}");
        web.ask("POST", "/api/v1/exec", &[&accept, "Content-Type: application/json"], body)
    };
    assert_eq!(wants("text/event-stream", &wrong).expect(422).json()["field"], "timeout_ms");
    let right = json!({ "language": "python", "source": "print(1)" }).to_string();
    let report = wants("application/json, text/event-stream;q=0.5", &right).expect(200).json();
    assert_eq!(report["stdout"], "1\n", "{report:#}");
}

#[test]
fn code_ends_with_the_client_that_waits_for_it_and_with_its_token() {
    let lab = Lab::empty();
    std::fs::create_dir_all(lab.home()).expect("ours");
    std::fs::set_permissions(lab.home(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    std::fs::write(lab.home().join("server.toml"), "[server]\nexec_max = 1\n").expect("ours");
    let mut web = Web::start(&lab);
    let endless = json!({ "language": "python", "source": "print('on')\nwhile True: pass", "timeout_ms": 3_600_000 });
    let begun = |web: &Web| {
        let mut stream = web.post_stream("/api/v1/exec", &endless);
        let first = stream.next().expect("it prints");
        assert!(first.event == "stdout" && first.data["text"].to_string().contains("on"), "{first:?}");
        web.post("/api/v1/exec", &endless).expect(503);
        stream
    };
    drop(begun(&web));
    until_there_is_room(&web);

    let all = std::mem::replace(&mut web.token, token(&lab, "lost", &["--scope", "run"]));
    let stream = begun(&web);
    web.token = all;
    lab.run(&["token", "remove", "lost"]).expect(0);
    ends_with_problem(stream, "the token `lost` was removed or has expired");
    until_there_is_room(&web);
}

/// Waits until a job runs, of a server that runs one at once.
#[track_caller]
fn until_there_is_room(web: &Web) {
    let since = Instant::now();
    let next = json!({ "language": "python", "source": "print(1)" });
    while web.post("/api/v1/exec", &next).status != 200 {
        assert!(since.elapsed() < Duration::from_secs(60), "the job before it goes on: {}", web.server.printed());
        std::thread::sleep(Duration::from_millis(50));
    }
}
