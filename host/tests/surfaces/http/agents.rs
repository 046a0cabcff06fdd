//! Agents, what they hand on, their schedules and their tasks, as clients of the API meet them.

use crate::common::lab::Lab;
use crate::common::web::Web;
use serde_json::{Value, json};

#[test]
fn an_agent_is_made_scheduled_run_and_tried_again_and_hands_on_what_it_knows() {
    let lab = Lab::empty();
    let web = Web::start(&lab);
    let put = |path: &str, tag: &str, body: &Value| {
        web.ask("PUT", path, &["Content-Type: application/json", &format!("If-Match: {tag}")], &body.to_string())
    };
    let code = |source: &str| json!({ "kind": "python", "source": source });
    let made = web.post("/api/v1/agents", &json!({ "name": "one", "code": code("print('hello')") })).expect(201);
    assert_eq!(made.header("location"), Some("/api/v1/agents/one"));
    web.post("/api/v1/agents", &json!({ "name": "one", "code": code("") })).expect(409);
    assert_eq!(
        web.post("/api/v1/agents", &json!({ "name": "../x", "code": code("") })).expect(422).json()["field"],
        "name"
    );
    let small = json!({ "name": "two", "code": code(""), "limits": { "timeout_ms": 0 } });
    assert_eq!(web.post("/api/v1/agents", &small).expect(422).json()["field"], "timeout_ms");
    assert_eq!(web.get("/api/v1/agents/one").expect(200).header("etag"), Some("\"1\""));
    put("/api/v1/agents/one", "\"7\"", &json!({ "description": "x" })).expect(412);
    put("/api/v1/agents/one", "\"1\"", &json!({ "description": "says hello" })).expect(200);
    assert_eq!(web.get("/api/v1/agents").json()["items"][0]["description"], "says hello");

    // Run: also where there is nothing to run.
    let ran = web.post("/api/v1/agents/one/execute", &json!({})).expect(200).json();
    assert_eq!(
        (&ran["success"], &ran["stdout"], &ran["exit_code"]),
        (&json!(true), &json!("hello\n"), &json!(0)),
        "{ran:#}"
    );
    let ran = web.post("/api/v1/agents/none/execute", &json!({})).expect(200).json();
    assert!(ran["error_message"].as_str().is_some_and(|why| why.contains("Agent none not found")), "{ran:#}");
    web.post("/api/v1/agents/one/deactivate", &json!({})).expect(200);
    let ran = web.post("/api/v1/agents/one/execute", &json!({})).expect(200).json();
    assert!(ran["error_message"].as_str().is_some_and(|why| why.contains("not active")), "{ran:#}");
    web.post("/api/v1/agents/one/activate", &json!({})).expect(200);

    // The artifact, changed only with its version.
    let handed = web.get("/api/v1/agents/one/artifact").expect(200);
    let tag = handed.header("etag").expect("a tag").to_owned();
    let state = json!({ "state": { "counter": 7 }, "summary": "seven" });
    let unsaid = web.ask("PUT", "/api/v1/agents/one/artifact", &["Content-Type: application/json"], &state.to_string());
    unsaid.expect(428);
    let now = put("/api/v1/agents/one/artifact", &tag, &state).expect(200);
    assert_eq!(now.json()["artifact"]["state"]["counter"], 7);
    put("/api/v1/agents/one/artifact", &tag, &state).expect(412);
    let history = web.get("/api/v1/agents/one/artifact/history").expect(200).json();
    assert!(history["items"].as_array().is_some_and(|all| !all.is_empty()), "{history:#}");

    // Schedules.
    let schedule =
        json!({ "name": "yearly", "agent": "one", "trigger": { "type": "cron", "cron": "@yearly" }, "retries_max": 0 });
    let made = web.post("/api/v1/schedules", &schedule).expect(201).json();
    assert!(made["next_ms"].as_array().is_some_and(|next| !next.is_empty()), "{made:#}");
    web.post("/api/v1/schedules", &schedule).expect(409);
    for (field, value) in [
        ("trigger", json!({ "type": "cron", "cron": "61 * * * *" })),
        ("missed", json!("never")),
        ("agent", json!("no body")),
    ] {
        let mut wrong = schedule.clone();
        (wrong["name"], wrong[field]) = (json!("other"), value);
        assert_eq!(web.post("/api/v1/schedules", &wrong).expect(422).json()["field"], field, "{wrong}");
    }
    web.get("/api/v1/schedules/none").expect(404);
    assert_eq!(web.post("/api/v1/schedules/yearly/pause", &json!({})).expect(200).json()["next_ms"], json!([]));
    web.post("/api/v1/schedules/yearly/resume", &json!({})).expect(200);
    assert_eq!(web.get("/api/v1/scheduler").expect(200).json()["working"], true);

    // A task of it, where programs have looked for tasks before.
    let task = web.post("/api/v1/schedules/yearly/run-now", &json!({})).expect(200).json()["id"].clone();
    let task = format!("/api/tasks/{}", task.as_str().expect("a name"));
    let done = web.until(&task, |task| task["status"] == "completed");
    assert_eq!(done["attempts"][0]["result"]["stdout"], "hello\n", "{done:#}");
    web.post(&format!("{task}/retry"), &json!({})).expect(409);
    let mut worse = schedule.clone();
    (worse["name"], worse["agent"], worse["retries_max"]) = (json!("worse"), json!("bad"), json!(1));
    web.post("/api/v1/agents", &json!({ "name": "bad", "code": code("raise SystemExit(3)") })).expect(201);
    web.post("/api/v1/schedules", &worse).expect(201);
    let failing = web.post("/api/v1/schedules/worse/run-now", &json!({})).expect(200).json()["id"].clone();
    let failing = format!("/api/tasks/{}", failing.as_str().expect("a name"));
    let failed = web.until(&failing, |task| task["status"] == "failed");
    assert!(
        failed["attempts"].as_array().is_some_and(|all| all.iter().all(|one| one["success"] == false)),
        "{failed:#}"
    );
    let page = web.get("/api/tasks/agents/one/tasks?status=completed&limit=1&offset=0").expect(200).json();
    assert_eq!(
        (page["tasks"].as_array().map(Vec::len), &page["limit"], &page["offset"]),
        (Some(1), &json!(1), &json!(0))
    );
    assert!(page["total_count"].as_u64().is_some_and(|count| count >= 1), "{page:#}");
    assert_eq!(web.get("/api/tasks/agents/one/tasks").json()["limit"], 100);
    assert_eq!(web.get("/api/tasks/agents/one/tasks?status=done").expect(422).json()["field"], "status");
    web.get("/api/tasks/none").expect(404);
    web.post("/api/tasks/none/retry", &json!({})).expect(404);
    web.ask("DELETE", "/api/v1/agents/bad", &[], "").expect(409);
    web.ask("DELETE", "/api/v1/schedules/worse", &[], "").expect(200);
    web.ask("DELETE", "/api/v1/agents/bad", &[], "").expect(200);
}
