//! The HTTP API as its clients meet it: admission, refusals, streams, and what a server does at its start and its end.

mod agents;
mod fuzz;
mod graphs;
mod history;
mod load;
mod queue;

use crate::common;
use crate::common::lab::Lab;
use crate::common::web::{Frame, Frames, Web, in_a_path, token};
use crate::common::{DOER_CONFIG, THREE_FEATURES, answer_if_asked, gated};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

/// Two features that pass.
fn goal() -> &'static str {
    &THREE_FEATURES[..THREE_FEATURES.find("## Feature: the one without").expect("there")]
}

fn lab() -> Lab {
    Lab::new(DOER_CONFIG, goal())
}

fn numbers(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

#[test]
fn nobody_is_let_in_without_a_token_that_holds_and_allows_what_is_asked() {
    let lab = lab();
    let reads = token(&lab, "reads", &["--scope", "read"]);
    let runs = token(&lab, "runs", &["--scope", "run", "--expires", "30d"]);
    let answers = token(&lab, "answers", &["--scope", "approve"]);
    let web = Web::start(&lab);
    let with = |token: &str, method: &str, path: &str| {
        let header = format!("Authorization: Bearer {token}");
        web.raw(method, path, &[&header, "Content-Type: application/json"], b"{}")
    };

    // Without a token a client may read its health and the page.
    for path in ["/health", "/ready"] {
        web.raw("GET", path, &[], b"").expect(200);
    }
    // Nothing else, however it is asked for.
    let forged = format!("{}{}", &reads[..reads.len() - 1], if reads.ends_with('0') { '1' } else { '0' });
    for header in [
        "X-Nothing: 1".to_owned(),
        "Authorization: Bearer".to_owned(),
        "Authorization: Bearer lh_0_0".to_owned(),
        format!("Authorization: Basic {reads}"),
        format!("Authorization: {reads}"),
        format!("Authorization: Bearer {forged}"),
        format!("Cookie: token={reads}"),
    ] {
        let said = web.raw("GET", "/api/v1/runs", &[&header], b"").expect(401);
        assert!(said.header("www-authenticate").is_some_and(|how| how.starts_with("bearer")), "{said:?}");
    }
    web.raw("GET", &format!("/api/v1/runs?token={reads}"), &[], b"").expect(401);
    for path in ["/api/v1/whoami", "/metrics", "/api/v1/openapi.json", "/api/v1/events/stream", "/api/nothing", "/api"]
    {
        web.raw("GET", path, &[], b"").expect(401);
    }

    // Requests that a scope allows, and requests that it does not.
    let status = |token: &str, method: &str, path: &str| with(token, method, path).status;
    for token in [&reads, &runs, &answers] {
        assert_eq!(status(token, "GET", "/api/v1/runs"), 200);
        assert_eq!(status(token, "POST", "/api/v1/projects"), 403);
    }
    let (start, approve) = ("/api/v1/runs", "/api/v1/approvals/a-000000000000/answer");
    assert_eq!(
        [status(&reads, "POST", start), status(&answers, "POST", start), status(&runs, "POST", start)],
        [403, 403, 422]
    );
    assert_eq!(
        [status(&reads, "POST", approve), status(&runs, "POST", approve), status(&answers, "POST", approve)],
        [403, 403, 422]
    );
    // Only the scope `admin` may name places of the machine.
    for (path, body) in [
        ("/api/v1/runs", json!({ "directory": lab.project() })),
        ("/api/v1/asks", json!({ "directory": lab.project(), "goal": "x" })),
        ("/api/v1/exec", json!({ "language": "python", "source": "", "hosts": ["https://example.com"] })),
        (
            "/api/v1/exec",
            json!({ "language": "python", "source": "", "directories": [{ "host": "/etc", "guest": "/etc" }] }),
        ),
    ] {
        let header = format!("Authorization: Bearer {runs}");
        let said = web
            .raw("POST", path, &[&header, "Content-Type: application/json"], body.to_string().as_bytes())
            .expect(403);
        assert!(said.body.contains("admin"), "{said:?}");
    }

    let own = with(&runs, "GET", "/api/v1/whoami").expect(200).json();
    assert_eq!((&own["name"], &own["scopes"], &own["required"]), (&json!("runs"), &json!(["run"]), &json!(true)));
    assert!(own["expires_ms"].is_u64(), "{own}");

    // A token is shown once, lets in until it is removed, and no name is had twice.
    let listed = lab.run(&["token", "list"]).expect(0);
    assert!(listed.stdout.contains("reads") && !listed.said().contains(&reads[20..]), "{}", listed.said());
    common::refused(&lab.run(&["token", "add", "reads", "--scope", "read"]), &["there is a token `reads`"]);
    lab.run(&["token", "remove", "reads"]).expect(0);
    assert_eq!(status(&reads, "GET", "/api/v1/runs"), 401);
    common::refused(&lab.run(&["token", "remove", "reads"]), &["there is no token"]);
    let state = std::fs::read(lab.home().join("state.redb")).expect("ours");
    let secret = runs.rsplit('_').next().expect("a secret").as_bytes();
    assert!(!state.windows(secret.len()).any(|part| part == secret), "the store holds no secret");
}

#[test]
fn a_token_lets_in_until_its_time_is_over() {
    let lab = Lab::empty();
    let mut web = Web::start(&lab);
    let made = lab.json(&["token", "add", "short", "--scope", "read", "--expires", "2s"]);
    let token = made["shown"].as_str().expect("shown").to_owned();
    let (at, until) = (made["token"]["created_ms"].as_u64().expect("a time"), made["token"]["expires_ms"].as_u64());
    assert_eq!(until, Some(at + 2_000));
    let header = format!("Authorization: Bearer {token}");
    let first = web.raw("GET", "/api/v1/whoami", &[&header], b"").status;
    let all = std::mem::replace(&mut web.token, token.clone());
    let mut stream = web.stream("/api/v1/events/stream", &[]);
    web.token = all;
    assert_eq!(stream.next().expect("opened").event, "hello");
    ends_with_problem(stream, "the token `short` was removed or has expired");
    assert_eq!((first, web.raw("GET", "/api/v1/whoami", &[&header], b"").status), (200, 401));
}

/// A stream that was open went on for as long as its client liked.
#[test]
fn the_open_streams_of_a_token_end_when_it_is_removed_and_those_of_others_go_on() {
    let lab = lab();
    let mut web = Web::start(&lab);
    let run = web.run(&lab);
    web.until_status(&run, "completed");
    let mut others = web.stream("/api/v1/events/stream", &[]);
    web.token = token(&lab, "lost", &["--scope", "read"]);
    let streams = ["/api/v1/events/stream".to_owned(), format!("/api/v1/runs/{run}/events/stream")];
    let streams = streams.map(|path| {
        let mut stream = web.stream(&path, &[]);
        stream.next().expect("opened");
        stream
    });
    lab.run(&["token", "remove", "lost"]).expect(0);
    for stream in streams {
        ends_with_problem(stream, "the token `lost` was removed or has expired");
    }
    assert_eq!(others.next().expect("open").event, "hello");
    web.token = token(&lab, "new", &["--scope", "admin"]);
    web.run(&lab);
    others.until(|frame| frame.event == "event");
}

#[track_caller]
fn ends_with_problem(mut stream: Frames, detail: &str) {
    let last = stream.until(|frame| frame.event == "problem").pop().expect("found");
    assert!(last.data["detail"].as_str().is_some_and(|said| said.starts_with(detail)), "{last:?}");
    assert_eq!(last.data["status"], 401);
    assert_eq!(stream.next(), None, "nothing comes after it");
}

#[test]
fn without_tokens_everybody_of_the_machine_is_let_in_and_nobody_else() {
    let lab = Lab::empty();
    let web = Web::with(&lab, &["--no-token"], &[], String::new());
    let own = web.raw("GET", "/api/v1/whoami", &[], b"").expect(200).json();
    assert_eq!((&own["required"], &own["scopes"]), (&json!(false), &json!(["admin"])));
    // A request with a wrong token is refused, not treated as one without.
    web.raw("GET", "/api/v1/whoami", &["Authorization: Bearer lh_0_0"], b"").expect(401);
    // Another page's script is not of the machine.
    web.raw("GET", "/api/v1/whoami", &["Host: evil.example"], b"").expect(403);
    web.raw("POST", "/api/v1/runs", &["Origin: http://evil.example", "Content-Type: application/json"], b"{}")
        .expect(403);
    drop(web);
    for args in [&["serve", "--no-token", "--listen", "0.0.0.0:0"][..], &["serve", "--no-token", "--listen", "[::]:0"]]
    {
        common::refused(&lab.run(args), &["can be reached by others"]);
    }
}

#[test]
fn a_request_that_is_wrong_is_refused_with_what_is_wrong() {
    let lab = lab();
    let web = Web::start(&lab);
    let json_type = "Content-Type: application/json";
    let token = format!("Authorization: Bearer {}", web.token);
    let run = web.run(&lab);
    let status = |method: &str, path: &str, headers: &[&str], body: &str| web.ask(method, path, headers, body).status;

    // Hosts and pages of others.
    for host in ["evil.example", "127.0.0.1.evil.example:80", "user@localhost", ""] {
        let said = web.ask("GET", "/health", &[&format!("Host: {host}")], "");
        assert!(matches!(said.status, 400 | 403), "{host}: {said:?}");
    }
    for header in
        ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"]
    {
        assert_eq!(status("POST", &format!("/api/v1/runs/{run}/pause"), &[header, json_type], "{}"), 403, "{header}");
    }
    let preflight =
        web.ask("OPTIONS", "/api/v1/runs", &["Origin: http://evil.example", "Access-Control-Request-Method: POST"], "");
    assert!(preflight.status == 405 && !preflight.head.contains("access-control"), "{preflight:?}");

    // Forms of bodies.
    assert_eq!(status("POST", "/api/v1/runs", &[], "{}"), 415);
    assert_eq!(status("POST", "/api/v1/runs", &["Content-Type: text/plain"], "{}"), 415);
    assert_eq!(status("POST", "/api/v1/runs", &["Content-Type: application/json; charset=utf-16"], "{}"), 415);
    assert_eq!(status("POST", "/api/v1/runs", &["Content-Type: application/json; charset=UTF-8"], "{}"), 422);
    for body in [&b"{"[..], b"", b"\xff\xfe{}", b"{} {}", b"\"\xed\xa0\x80\""] {
        web.raw("POST", "/api/v1/runs", &[&token, json_type], body).expect(400);
    }
    for (body, field) in [
        (json!({ "project": 1 }), "project"),
        (json!({ "project": "x", "sessions": -1 }), "sessions"),
        (json!({ "project": "x", "sessions": 0 }), "sessions"),
        (json!({ "projekt": "x" }), "projekt"),
        (json!({ "project": "nobody knows" }), "project"),
        (json!({ "project": "x", "directory": "/x" }), "project"),
        (json!({ "directory": "relative" }), "directory"),
        (json!({ "project": "x", "plan": { "steps": [{ "feature": { "id": 1 } }] } }), "plan.steps[0].feature.id"),
    ] {
        let problem = web.post("/api/v1/runs", &body).expect(422).json();
        assert_eq!((&problem["field"], &problem["code"]), (&json!(field), &json!("invalid")), "{body}: {problem}");
    }

    // Parameters.
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("offset=-1", "offset"),
        ("satus=new", "satus"),
        ("status=nwe", "status"),
    ] {
        let problem = web.get(&format!("/api/v1/runs?{query}")).expect(422).json();
        assert_eq!(problem["field"], field, "{query}: {problem}");
    }
    assert_eq!(status("GET", "/api/v1/runs?project=%ff", &[], ""), 400);

    // Paths that go elsewhere.
    for path in [
        "/../longhaul.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/.hidden",
        "/index.html%00.js",
        "//etc/passwd",
        "/server.rs",
        "/api/v1/runs/..",
        "/api/v1/runs/%2e%2e",
        "/api/v1/runs/r-0000000000%00",
        "/api/v1/runs/r-zzzz",
        "/api/v1/runs/r-0000%2f..%2f..",
        "/api/v1/runs/r-0000000000000000000000",
        "/api/v1/nothing",
        "/nothing",
    ] {
        let said = web.get(path);
        assert!(matches!(said.status, 404 | 400), "{path}: {said:?}");
        assert!(said.head.contains("problem+json"), "{path}: {said:?}");
    }
    assert_eq!(status("GET", "/api/v1/runs/%ff%fe", &[], ""), 400);
    let said = web.ask("PATCH", "/api/v1/runs", &[json_type], "{}").expect(405);
    assert!(said.header("allow").is_some_and(|allow| allow.contains("post")), "{said:?}");
    assert_eq!(status("TRACE", "/api/v1/runs", &[], ""), 405);

    // Sizes.
    let large = format!("{{\"project\":\"{}\"}}", "x".repeat(2 << 20));
    web.ask("POST", "/api/v1/runs", &[json_type], &large).expect(413);
    let mut chunked = format!("POST /api/v1/runs HTTP/1.1\r\nHost: {}\r\n{token}\r\n{json_type}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n", web.address).into_bytes();
    for _ in 0..40 {
        chunked.extend_from_slice(format!("{:x}\r\n{}\r\n", 65_536, "x".repeat(65_536)).as_bytes());
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    web.bytes(&chunked).expect(413);
    let long = web.get(&format!("/{}", "x".repeat(100_000)));
    assert!((400..500).contains(&long.status), "{}", long.status);
    let headers: Vec<String> = (0..200).map(|number| format!("X-{number}: {}", "y".repeat(1_000))).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let flood = web.ask("GET", "/health", &headers, "");
    assert!((400..500).contains(&flood.status) || flood.status == 0, "{}", flood.status);

    // Existing resources, and resources that do not exist yet.
    for path in [
        "r-ffffffffffff",
        "r-ffffffffffff/events",
        "r-ffffffffffff/events/stream",
        "r-ffffffffffff/journal",
        "r-ffffffffffff/report",
    ] {
        assert_eq!(web.get(&format!("/api/v1/runs/{path}")).expect(404).json()["code"], "unknown", "{path}");
    }
    web.get(&format!("/api/v1/runs/{run}/journal/entries?invocation=none")).expect(404);
    web.get("/api/v1/approvals/a-000000000000").expect(404);
    web.until_status(&run, "completed");
    for (order, body) in [("pause", json!({})), ("steer", json!({ "text": "faster" }))] {
        let problem = web.post(&format!("/api/v1/runs/{run}/{order}"), &body).expect(409).json();
        assert_eq!(problem["code"], "conflict", "{problem}");
    }
    web.ask("DELETE", &format!("/api/v1/runs/{run}/features/none"), &[], "").expect(404);
    // A file of the project that cannot be read is the project's fault for every caller.
    let file = lab.project().join("longhaul.toml");
    let config = std::fs::read_to_string(&file).expect("ours");
    std::fs::write(&file, "[project").expect("ours");
    let problem = web.post("/api/v1/runs", &json!({ "directory": lab.project() })).expect(422).json();
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains("longhaul.toml")), "{problem}");
    std::fs::remove_file(&file).expect("ours");
    web.post("/api/v1/runs", &json!({ "directory": lab.project() })).expect(422);
    std::fs::write(&file, config).expect("ours");

    // No response may be framed, sniffed or cached, and each one can be found in the log.
    let said = web.get("/api/v1/runs").expect(200);
    for header in
        ["x-content-type-options: nosniff", "cache-control: no-store", "x-request-id: q-", "frame-ancestors 'none'"]
    {
        assert!(said.head.contains(header), "{header}: {}", said.head);
    }
    assert!(!said.head.contains("access-control-allow-origin") && !said.head.contains("set-cookie"), "{}", said.head);
}

#[test]
fn who_asks_too_often_or_too_slowly_holds_nobody_up() {
    let lab = lab();
    std::fs::create_dir_all(lab.home()).expect("ours");
    std::fs::set_permissions(lab.home(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    let limits = "requests_per_second = 5\nrequests_burst = 20\nstreams_max = 2\nconnections_max = 40\n";
    std::fs::write(lab.home().join("server.toml"), format!("[server]\n{limits}")).expect("ours");
    let other = token(&lab, "other", &["--scope", "read"]);
    let mut web = Web::start(&lab);

    // A client that never says all of its headers, and one that never says its body.
    let token_line = format!("Authorization: Bearer {}", web.token);
    let mut silent: Vec<_> = (0..10).map(|_| web.connect()).collect();
    for stream in &mut silent {
        stream.write_all(b"GET /health HTTP/1.1\r\nHost: ").expect("taken");
    }
    let head = format!(
        "POST /api/v1/runs HTTP/1.1\r\nHost: {}\r\n{token_line}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{{",
        web.address
    );
    let mut slow = web.connect();
    slow.write_all(head.as_bytes()).expect("taken");
    web.get("/health").expect(200);

    // Streams are counted, and given back.
    let streams = [web.stream("/api/v1/events/stream", &[]), web.stream("/api/v1/events/stream", &[])];
    let full = web.get("/api/v1/events/stream").expect(503);
    assert!(full.header("retry-after").is_some(), "{full:?}");
    drop(streams);

    // A client with too many requests gets the time to wait; another client gets its response.
    let said: Vec<_> = (0..60).map(|_| web.get("/api/v1/whoami")).collect();
    let refused: Vec<_> = said.iter().filter(|said| said.status == 429).collect();
    assert!(!refused.is_empty(), "60 requests with a burst of 20");
    assert!(refused.iter().all(|said| said.header("retry-after").is_some()), "{refused:?}");
    assert!(said.iter().all(|said| matches!(said.status, 200 | 429)), "{said:?}");
    web.raw("GET", "/api/v1/whoami", &[&format!("Authorization: Bearer {other}")], b"").expect(200);

    // A changed file takes effect while the server runs; a wrong one changes nothing.
    std::fs::write(lab.home().join("server.toml"), "[server]\nrequests_per_second = 0\n").expect("ours");
    hang_up(&web);
    web.server.wait_for("server.toml is not taken over");
    let generous = "[server]\nrequests_per_second = 10000\nrequests_burst = 10000\nconnections_max = 7\n";
    std::fs::write(lab.home().join("server.toml"), generous).expect("ours");
    hang_up(&web);
    web.server.wait_for("connections_max changes when the server is started again");
    std::thread::sleep(Duration::from_millis(50));
    let all_pass = (0..60).all(|_| web.get("/api/v1/whoami").status == 200);
    assert!(all_pass, "the new rate holds");

    // Those that said nothing are let go.
    for mut stream in silent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(!String::from_utf8_lossy(&rest).contains("200 OK"), "{rest:?}");
    }
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).expect("closed");
    assert!(String::from_utf8_lossy(&rest).starts_with("HTTP/1.1 408"), "{}", String::from_utf8_lossy(&rest));
}

fn hang_up(web: &Web) {
    let pid = i32::try_from(web.server.pid()).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).expect("ours");
}

fn terminate(web: &Web) {
    let pid = i32::try_from(web.server.pid()).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("ours");
}

#[test]
fn a_run_is_started_watched_and_looked_at_from_all_sides() {
    let lab = lab();
    let web = Web::start(&lab);
    let all = web.stream("/api/v1/events/stream", &[]);
    let run = web.run(&lab);
    let mut frames = web.stream(&format!("/api/v1/runs/{run}/events/stream"), &[]);
    let seen = frames.until(|frame| frame.event == "gone");
    let count = u64::try_from(numbers(&seen).len()).expect("few");
    assert_eq!(numbers(&seen), (1..=count).collect::<Vec<_>>(), "each event once, in order");
    assert!(seen.iter().any(|frame| frame.event == "token"), "what models say is heard");
    assert!(seen.iter().all(|frame| frame.data["run"] == run.as_str() && frame.data["version"] == 1), "{seen:#?}");
    assert_eq!(web.until_status(&run, "completed")["passing"], json!({ "done": 2, "of": 2 }));

    // From any number, by the header or the address, the header first.
    let rest = |path: &str, headers: &[&str]| {
        let path = format!("/api/v1/runs/{run}/events/stream?follow=false{path}");
        numbers(&web.stream(&path, headers).until(|frame| frame.event == "gone"))
    };
    for after in [0, 1, count / 2, count - 1, count, count + 7] {
        let expected: Vec<u64> = (after + 1..=count).collect();
        assert_eq!(rest(&format!("&after={after}"), &[]), expected);
        assert_eq!(rest("&after=1", &[&format!("Last-Event-ID: {after}")]), expected);
    }
    web.ask("GET", &format!("/api/v1/runs/{run}/events/stream"), &["Last-Event-ID: x"], "").expect(422);
    let page = web.get(&format!("/api/v1/runs/{run}/events?after=3&limit=2")).expect(200).json();
    assert_eq!(
        (&page["next_after"], &page["last"], &page["items"][0]["number"]),
        (&json!(5), &json!(count), &json!(4))
    );

    // A watcher of all runs is notified of this one.
    let mut all = all;
    let heard = all.until(|frame| frame.event == "event" && frame.data["type"] == "done");
    assert_eq!(heard[0].event, "hello");
    assert!(heard.iter().any(|frame| frame.event == "run" && frame.data["run"] == run.as_str()), "{heard:#?}");

    // Everything else that there is of it.
    let list = web.get("/api/v1/runs?status=completed,failed&project=kept&limit=1").expect(200).json();
    assert_eq!((&list["total"], &list["items"][0]["run"]), (&json!(1), &json!(run)));
    assert_eq!(web.get("/api/v1/runs?status=parked").json()["total"], 0);
    assert_eq!(web.get("/api/v1/runs?offset=5").json()["items"], json!([]));
    assert_eq!(web.get("/api/v1/projects").json()["items"][0]["run"], run.as_str());
    let features = web.get(&format!("/api/v1/runs/{run}/features")).expect(200).json();
    assert_eq!(features["items"][1]["depends_on"], json!(["one"]));
    let invocations = web.get(&format!("/api/v1/runs/{run}/journal")).expect(200).json();
    let invocation = format!("{run}/f-one/1/generate");
    assert!(
        invocations["items"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["invocation"] == invocation.as_str())),
        "{invocations:#}"
    );
    let entries =
        web.get(&format!("/api/v1/runs/{run}/journal/entries?invocation=f-one/1/generate&limit=2")).expect(200).json();
    assert_eq!(
        (entries["entries"].as_array().map(Vec::len), &entries["next_after"]),
        (Some(2), &entries["entries"][1]["number"])
    );
    assert!(entries["finished"]["fuel_used"].is_u64(), "{entries:#}");
    let replay =
        web.post(&format!("/api/v1/runs/{run}/replay"), &json!({ "invocation": invocation })).expect(200).json();
    assert_eq!(replay["invocations"][0]["same"], true, "{replay:#}");
    let log = web.get(&format!("/api/v1/runs/{run}/log")).expect(200).json();
    assert_eq!(log["commits"].as_array().map(Vec::len), Some(2), "{log:#}");
    for (format, kind) in [("md", "text/markdown"), ("html", "text/html"), ("json", "application/json")] {
        let report = web.get(&format!("/api/v1/runs/{run}/report?format={format}")).expect(200);
        assert!(report.header("content-type").is_some_and(|found| found.starts_with(kind)), "{format}");
        assert_eq!(report.header("content-disposition"), Some(&*format!("attachment; filename=\"{run}.{format}\"")));
        assert!(report.body.contains(&run), "{format}");
    }
    let costs = web.get("/api/v1/costs?project=kept").expect(200).json();
    assert_eq!(costs["items"][0]["run"], run.as_str());
    assert_eq!(costs["sum"], costs["items"][0]["usage"]);
    runs_are_found_and_summed_up(&web, &run, &costs);
    assert!(costs["sum"]["output_tokens"].as_u64().is_some_and(|tokens| tokens > 0), "{costs:#}");
    let trajectories = web.get(&format!("/api/v1/runs/{run}/trajectories?agent=code")).expect(200).json();
    assert_eq!(trajectories["total"], 2, "{trajectories:#}");
    let path = format!("/api/v1/runs/{run}/trajectory");
    let one = web.get(&format!("{path}?invocation={invocation}")).expect(200).json();
    assert!(one["conversations"][0].as_array().is_some_and(|said| !said.is_empty()), "{one:#}");
    let rated =
        web.post(&format!("{path}/annotate"), &json!({ "invocation": invocation, "rating": 4 })).expect(200).json();
    assert_eq!(rated["rating"], 4);
    web.post(&format!("{path}/annotate"), &json!({ "invocation": invocation, "rating": 6 })).expect(422);
    let decisions = web.get(&format!("/api/v1/runs/{run}/decisions?limit=5")).expect(200).json();
    let decision = decisions["items"][0]["id"].as_str().expect("the run decided something").to_owned();
    let judged = web
        .post(
            &format!("/api/v1/runs/{run}/decisions/{}/judge", in_a_path(&decision)),
            &json!({ "outcome": "success", "score": 7, "lesson": "do it again" }),
        )
        .expect(200)
        .json();
    assert_eq!((&judged["outcome"], &judged["score"]), (&json!("success"), &json!(1.0)));
    web.get(&format!("/api/v1/runs/{run}/memory?limit=5")).expect(200);
    web.ask("DELETE", &format!("/api/v1/runs/{run}/memory?key=none"), &[], "").expect(404);
    assert_eq!(web.get(&format!("/api/v1/runs/{run}/proposals")).expect(200).json()["total"], 0);
    web.post(&format!("/api/v1/runs/{run}/proposals/p-000000000000/accept"), &json!({})).expect(404);
    let metrics = web.get("/metrics").expect(200).body;
    let counted =
        |text: &str| text.lines().find(|line| line.starts_with("longhaul_runs_started_total ")).map(str::to_owned);
    assert!(counted(&metrics).is_some(), "{metrics}");
    assert_eq!(counted(&web.get("/metrics").expect(200).body), counted(&metrics), "each event counts once");
    let alerts = std::fs::read_to_string(common::repository().join("packaging/alerts.yml")).expect("it is there");
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let names = alerts.match_indices("longhaul_").map(|(at, _)| &alerts[at..]);
    for name in names.map(|rest| &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())]) {
        // The lines of a histogram have other names than their family.
        let family = name.strip_suffix("_bucket").unwrap_or(name);
        assert!(metrics.contains(&format!("# HELP {family} ")), "the alerts look at {name}: {metrics}");
    }
    let took = "longhaul_http_request_seconds_count{method=\"GET\",route=\"/api/v1/runs/{run}/log\"} 1";
    assert!(metrics.lines().any(|line| line == took), "no `{took}` in\n{metrics}");
    for told in
        ["longhaul_schedules 0", "longhaul_scheduler_working 1", "longhaul_store_bytes ", "longhaul_disk_bytes "]
    {
        assert!(metrics.lines().any(|line| line.starts_with(told)), "no `{told}` in\n{metrics}");
    }
    let plugins = web.get("/api/v1/plugins?limit=1000").expect(200).json();
    assert!(
        plugins["items"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one["name"] == "files" && one["role"] == "tool")),
        "{plugins:#}"
    );
    let rechecked = web.post(&format!("/api/v1/runs/{run}/recheck"), &json!({})).expect(200).json();
    assert_eq!(rechecked["features"].as_array().map(Vec::len), Some(2), "{rechecked:#}");
    let base = log["commits"][1]["commit"].as_str().expect("a commit");
    let back = web.post(&format!("/api/v1/runs/{run}/revert"), &json!({ "to": base })).expect(200).json();
    assert_eq!(back["to"], base);
    // Another surface sees the same.
    assert_eq!(lab.json(&["status"])["features"].as_array().map(Vec::len), Some(2));
}

/// The one run of the server is found by each filter of the list, and its costs are those of each group.
#[track_caller]
fn runs_are_found_and_summed_up(web: &Web, run: &str, costs: &Value) {
    assert_eq!(costs["items"][0]["budget_microdollars"], Value::Null, "the run has no cap on money");
    let named = |group: &str| (costs[group][0]["name"].clone(), costs[group][0]["usage"].clone());
    assert_eq!(named("by_project"), (json!("kept"), costs["sum"].clone()));
    let agents = costs["by_agent"].as_array().expect("a list");
    assert!(agents.iter().any(|sum| sum["name"] == "agents.code"), "{costs:#}");
    let tokens = |sum: &Value| sum["input_tokens"].as_u64().expect("a number");
    let of_agents: u64 = agents.iter().map(|sum| tokens(&sum["usage"])).sum();
    assert_eq!(of_agents, tokens(&costs["sum"]), "each reply is of one agent: {costs:#}");
    assert_eq!(costs["by_day"].as_array().map(Vec::len), Some(1), "{costs:#}");
    let listed = web.get("/api/v1/runs").expect(200).json()["items"][0].clone();
    assert_eq!((&listed["agents"], &listed["usage"]), (&json!(["code"]), &costs["sum"]), "{listed:#}");
    let created_ms = listed["created_ms"].as_u64().expect("a time");
    let title = listed["title"].as_str().expect("a title");
    assert_eq!(title, "Three", "the first line of the goal that tells something");
    let past = created_ms + 1;
    for (query, found) in [
        ("search=THREE".to_owned(), 1),
        (format!("search={}", &run[2..]), 1),
        ("search=nothing+like+it".to_owned(), 0),
        ("agent=code".to_owned(), 1),
        ("agent=other".to_owned(), 0),
        (format!("after_ms={created_ms}"), 1),
        (format!("after_ms={past}"), 0),
        (format!("before_ms={past}"), 1),
        (format!("before_ms={created_ms}"), 0),
    ] {
        assert_eq!(web.get(&format!("/api/v1/runs?{query}")).expect(200).json()["total"], found, "{query}");
    }
}

#[test]
fn a_feature_is_added_edited_and_dropped_and_a_run_steered_paused_resumed_and_given_up() {
    let lab = lab();
    lab.fake.model_takes(Duration::from_millis(300));
    let web = Web::start(&lab);
    let run = web.run(&lab);
    let path = format!("/api/v1/runs/{run}");
    web.until(&path, |run| {
        run["features"].as_array().is_some_and(|all| all.iter().any(|one| one["status"] == "in_progress"))
    });
    web.post(&format!("{path}/steer"), &json!({ "text": "mind the gap" })).expect(200);
    web.post(&format!("{path}/pause"), &json!({})).expect(200);
    web.until_status(&run, "paused");
    let four = json!({ "id": "four", "title": "The fourth", "instruction": "Do it.", "criteria": [{ "id": "c", "text": "it is there", "check": "wrote_four" }], "checks": [{ "name": "wrote_four", "language": "native", "body": "wrote_four" }] });
    // The run is paused, and may be about to be let go of.
    let since = std::time::Instant::now();
    while web.post(&format!("{path}/features"), &four).status == 409 {
        assert!(since.elapsed() < Duration::from_secs(20), "{}", web.server.printed());
    }
    let mut edited = four.clone();
    edited["title"] = json!("The fourth, edited");
    let put = |path: &str, body: &Value| web.ask("PUT", path, &["Content-Type: application/json"], &body.to_string());
    put(&format!("{path}/features/four"), &edited).expect(200);
    assert_eq!(put(&format!("{path}/features/five"), &edited).expect(422).json()["field"], "id");
    for priority in [0, 11] {
        let mut wrong = edited.clone();
        wrong["priority"] = json!(priority);
        assert_eq!(put(&format!("{path}/features/four"), &wrong).expect(422).json()["field"], "priority");
    }
    edited["id"] = json!("five");
    put(&format!("{path}/features/five"), &edited).expect(404);
    let listed = web.get(&format!("{path}/features")).json();
    assert_eq!(listed["items"][2]["title"], "The fourth, edited", "{listed:#}");
    web.ask("DELETE", &format!("{path}/features/four"), &[], "").expect(200);
    web.post("/api/v1/runs", &json!({ "project": "kept" })).expect(409);
    // A paused run stays so over a restart, since a person wanted it.
    let web = web.again(&lab);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(web.get(&path).json()["status"], "paused");
    lab.fake.model_takes(Duration::ZERO);
    web.post(&format!("{path}/resume"), &json!({})).expect(200);
    web.until_status(&run, "completed");
    web.post(&format!("{path}/abandon"), &json!({ "reason": "it was a test" })).expect(409);
}

#[test]
fn an_approval_is_answered_and_the_run_goes_on_by_itself() {
    let lab = gated::lab(&json!([gated::post("a"), gated::post("b")]), &json!([]));
    let web = Web::start(&lab);
    let run = web.run(&lab);
    let open = "/api/v1/approvals?open=true";
    let first = web.until(open, |all| all["total"] == 1)["items"][0].clone();
    assert_eq!((&first["tool"], &first["status"], &first["run"]), (&json!("poster"), &json!("open"), &json!(run)));
    let path = format!("/api/v1/approvals/{}", first["id"].as_str().expect("an id"));
    web.post(&format!("{path}/answer"), &json!({ "text": " " })).expect(422);
    let answered = web.post(&format!("{path}/answer"), &json!({ "text": "a" })).expect(200).json();
    let rule = answered["rule"]["id"].as_str().expect("a rule").to_owned();
    web.post(&format!("{path}/answer"), &json!({ "text": "n" })).expect(409);
    // The server resumes it without a command, and the rule lets the second call pass.
    web.until_status(&run, "completed");
    assert_eq!(gated::posted(&lab), ["a", "b"]);
    assert_eq!(web.get("/api/v1/rules").json()["items"][0]["id"], rule.as_str());
    web.ask("DELETE", &format!("/api/v1/runs/{run}/rules/{rule}"), &[], "").expect(200);
    web.ask("DELETE", &format!("/api/v1/runs/{run}/rules/{rule}"), &[], "").expect(404);
    assert_ne!(web.get(&path).json()["status"], "open");
}

#[test]
fn a_server_that_is_told_to_end_leaves_its_runs_and_the_next_one_goes_on_with_them() {
    let lab = lab();
    lab.fake.model_takes(Duration::from_millis(400));
    let web = Web::start(&lab);
    let run = web.run(&lab);
    let mut frames = web.stream(&format!("/api/v1/runs/{run}/events/stream"), &[]);
    let before = frames.until(|frame| frame.data["type"] == "task_started");
    terminate(&web);
    let mut seen = before;
    while let Some(frame) = frames.next() {
        seen.push(frame);
    }
    let last = numbers(&seen).pop().expect("some");
    let Web { server, token, .. } = web;
    let ended = server.wait().expect(0);
    assert!(ended.stdout.contains("stopped"), "{}", ended.said());

    lab.fake.model_takes(Duration::ZERO);
    let web = Web::with(&lab, &[], &[], token);
    let rest = web.stream(&format!("/api/v1/runs/{run}/events/stream"), &[&format!("Last-Event-ID: {last}")]);
    let mut rest = rest;
    let later = rest.until(|frame| frame.data["type"] == "done");
    let all: Vec<u64> = numbers(&seen).into_iter().chain(numbers(&later)).collect();
    assert_eq!(all, (1..=u64::try_from(all.len()).expect("few")).collect::<Vec<_>>(), "nothing twice, nothing missing");
    web.until_status(&run, "completed");
    assert_eq!(lab.fake.posts().len(), 6, "each post once: {:?}", lab.fake.posts());
}

#[test]
fn no_task_is_lost_or_done_twice_however_often_the_server_is_killed() {
    let kills: u32 = std::env::var("LONGHAUL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(5);
    let lab = lab();
    lab.make_project("other", &DOER_CONFIG.replace("\"kept\"", "\"other\""), goal());
    lab.fake.model_takes(Duration::from_millis(50));
    let mut web = Web::start(&lab);
    let mut last: Vec<(String, u64)> = Vec::new();
    for kill in 0..kills {
        // New work whenever the old is done.
        for project in ["project", "other"] {
            let made = web.post("/api/v1/runs", &json!({ "directory": lab.path(project) }));
            assert!(matches!(made.status, 201 | 409), "{made:?}");
            if made.status == 201 {
                last.push((made.json()["run"].as_str().expect("a name").to_owned(), 0));
            }
        }
        for (run, after) in &mut last {
            let path = format!("/api/v1/runs/{run}/events/stream?follow=false");
            let mut frames = web.stream(&path, &[&format!("Last-Event-ID: {after}")]);
            for _ in 0..(3 + kill % 7) {
                let Some(frame) = frames.next() else { break };
                if let Some(number) = frame.id {
                    assert_eq!(number, *after + 1, "{run} goes on where it was");
                    *after = number;
                }
                if frame.event == "gone" {
                    break;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(37 * u64::from(kill % 9 + 1)));
        web.server.kill();
        web = web.again(&lab);
    }
    lab.fake.model_takes(Duration::ZERO);
    for (run, _) in &last {
        let path = format!("/api/v1/runs/{run}");
        loop {
            let ended = web.until(&path, |run| {
                ["completed", "incomplete", "failed", "parked"].iter().any(|end| run["status"] == *end)
            });
            if ended["status"] != "parked" {
                assert_eq!(ended["status"], "completed", "{ended:#}");
                break;
            }
            // A kill between an effect and its note leaves one question, as it must.
            answer(&lab, &web, &ended);
        }
    }
    let mut posts: Vec<String> =
        lab.fake.posts().into_iter().map(|told| format!("{} {}", told.key, told.text)).collect();
    let count = posts.len();
    posts.sort();
    posts.dedup();
    assert_eq!(posts.len(), count, "no effect twice under one key");
    // A run is at work for a moment beyond its last status.
    web.until("/api/v1/runs?active=true", |active| active["total"] == 0);
}

/// Answers like a person who looked if the effect happened.
fn answer(lab: &Lab, web: &Web, run: &Value) {
    let question = run["question"].as_str().unwrap_or_else(|| panic!("it waits for something else: {run:#}"));
    let text =
        question.split_once("poster.post {\"text\":\"").and_then(|(_, rest)| rest.split_once('"')).expect("a post").0;
    let answer = common::fake::answer_to("post", text).to_string();
    let happened = lab.fake.posts().iter().any(|told| told.text == text);
    let resolution = if happened { json!({ "happened": answer }) } else { json!("did_not_happen") };
    let feature = text.split('-').next();
    let path = format!("/api/v1/runs/{}/answer", run["run"].as_str().expect("a name"));
    web.post(&path, &json!({ "feature": feature, "resolution": resolution })).expect(200);
}

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
fn the_page_is_served_as_it_is_and_may_run_nothing_but_itself() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let page = web.raw("GET", "/", &[], b"").expect(200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "default-src 'none'; script-src 'self'; style-src 'self'",
        "frame-ancestors 'none'",
        "form-action 'none'",
        "base-uri 'none'",
        "nosniff",
    ] {
        assert!(page.head.contains(header), "{header}: {}", page.head);
    }
    assert!(!page.head.contains("unsafe"), "{}", page.head);
    let tag = page.header("etag").expect("a tag").to_owned();
    let known = web.raw("GET", "/", &[&format!("If-None-Match: {tag}")], b"");
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    assert_eq!(web.raw("HEAD", "/", &[], b"").status, 200);
    web.raw("POST", "/", &[], b"").expect(405);
}

#[test]
fn a_person_at_the_terminal_and_one_at_the_page_see_the_same_run() {
    let lab = lab();
    let web = Web::start(&lab);
    lab.run(&["run"]).expect(0);
    let run = lab.runs().pop().expect("a run");
    assert_eq!(web.get(&format!("/api/v1/runs/{run}")).json()["status"], "completed");
    assert!(answer_if_asked(&lab).is_some());
    // The next server on another port finds the data directory taken, and says so.
    let owner = web.server.pid().to_string();
    for address in ["127.0.0.1:0", web.address.as_str()] {
        let asked = Instant::now();
        let second = lab.start(&["serve", "--listen", address]).wait();
        common::refused(&second, &["another longhaul owns", "a server, process ", &owner, "`kill ", "--home"]);
        assert!(asked.elapsed() < Duration::from_secs(15), "a server does not go away by itself: {second:?}");
    }
}
