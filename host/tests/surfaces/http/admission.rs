//! Admission of clients: tokens with their scopes and expiry, and clients that ask too often or too slowly.

use super::lab;
use crate::common;
use crate::common::lab::Lab;
use crate::common::web::{Frames, Web, token};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::time::Duration;

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
        ("/api/v1/exec", json!({ "language": "python", "source": "", "runtime": "native" })),
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

/// A stream of a client that is admitted no more.
#[track_caller]
pub(super) fn ends_with_problem(mut stream: Frames, detail: &str) {
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
