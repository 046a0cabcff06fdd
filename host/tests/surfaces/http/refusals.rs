//! Requests that are wrong, and the problem that each response names.

use super::lab;
use crate::common::web::Web;
use serde_json::json;

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
    web.get(&format!("/api/v1/runs/{run}/at?point=feature:none")).expect(404);
    web.get(&format!("/api/v1/runs/{run}/at?point=time:9999-01-01")).expect(422);
    assert_eq!(web.get(&format!("/api/v1/runs/{run}/at?point=last")).expect(422).json()["field"], "point");
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
