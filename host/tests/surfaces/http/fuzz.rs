//! The API held to its own description by a fuzzer: no answer is the server's fault, and each is as it is described.

use super::lab;
use crate::common::lab::Lab;
use crate::common::python::{python, site};
use crate::common::web::Web;
use std::process::Output;

/// The fuzzer and what it needs, in the versions that were tried.
const LIST: &str = "host/tests/surfaces/http/requirements.txt";

/// Requests to each operation in each phase; `LONGHAUL_FUZZ` asks for more.
const EXAMPLES: &str = "5";

/// The checks of each response. Acceptance of valid requests is not among them: a request that fits the description of
/// its type may not fit the existing data.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,\
    response_schema_conformance,unsupported_method,allow_header_conformance,ignored_auth";

#[test]
fn a_fuzzer_finds_no_answer_that_is_the_servers_fault_or_not_as_described() {
    let lab = lab();
    std::fs::create_dir_all(lab.home()).expect("ours");
    std::fs::set_permissions(lab.home(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).expect("ours");
    let rates = "[server]\nrequests_per_second = 100000\nrequests_burst = 100000\n";
    std::fs::write(lab.home().join("server.toml"), rates).expect("ours");
    let web = Web::start(&lab);
    let run = web.run(&lab);
    web.until_status(&run, "completed");
    let agent = serde_json::json!({ "name": "one", "code": { "kind": "python", "source": "print(1)" } });
    web.post("/api/v1/agents", &agent).expect(201);
    let schedule =
        serde_json::json!({ "name": "one", "agent": "one", "trigger": { "type": "cron", "cron": "@yearly" } });
    web.post("/api/v1/schedules", &schedule).expect(201);
    // Names of things that are there; the fuzzer finds those that are not by itself.
    let config =
        format!("[parameters]\n\"path.run\" = {run:?}\n\"path.agent\" = \"one\"\n\"path.schedule\" = \"one\"\n");
    std::fs::write(lab.path("schemathesis.toml"), config).expect("ours");
    let fuzzed = fuzz(&lab, &web);
    let said = String::from_utf8_lossy(&fuzzed.stdout).into_owned();
    println!("{said}");
    assert!(fuzzed.status.success(), "{said}\n{}\n{}", String::from_utf8_lossy(&fuzzed.stderr), web.server.printed());
    web.get("/health").expect(200);
}

fn fuzz(lab: &Lab, web: &Web) -> Output {
    let examples = std::env::var("LONGHAUL_FUZZ").unwrap_or_else(|_| EXAMPLES.to_owned());
    python()
        .args(["-m", "schemathesis.cli", "--config-file"])
        .arg(lab.path("schemathesis.toml"))
        .args(["run", &format!("http://{}/api/v1/openapi.json", web.address), "--header"])
        .arg(format!("Authorization: Bearer {}", web.token))
        .args(["--checks", CHECKS, "--max-examples", &examples, "--workers", "1", "--seed", "1", "--no-shrink"])
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--generation-database",
            "none",
            "--suppress-health-check",
            "all",
        ])
        // A stream has no end, and projects are made wherever the fuzzer likes.
        .args([
            "--exclude-path-regex",
            "/(stream|output)$",
            "--exclude-name",
            "POST /api/v1/projects",
            "--continue-on-failure",
        ])
        .env("PYTHONPATH", site(LIST))
        .current_dir(lab.path(""))
        .output()
        .expect("python3 is installed")
}
