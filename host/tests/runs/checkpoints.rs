//! Runs as they stand: exported, taken up elsewhere, kept for a time.

mod cases;

use crate::common;
use crate::common::fake::Kill;
use crate::common::gated;
use crate::common::lab::Lab;
use crate::common::reader::NEXT;
use crate::redis_server::RedisServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_core::shared::RunShare as _;
use longhaul_redis::{RedisConfig, SharedRuns};
use serde_json::{Value, json};
use std::path::Path;

/// A project whose agent reads file after file.
const READER: &str = r#"
[project]
name = "long"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"

[agents.code]
plugin = "react"
models = ["fake"]
tools = ["files"]
checkpoint_every = 3
settings = { steps_max = 10 }

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[evaluator]
plugin = "lenient"

[checks]
fine = { argv = ["true"] }

[run.limits]
iterations_max = 1
"#;

/// With so many files; the last one says what comes then.
fn reader(files: usize, then: &str) -> Lab {
    reader_with(READER, files, then)
}

fn reader_with(config: &str, files: usize, then: &str) -> Lab {
    let goal = format!("# Long\n\n## Feature: read\n- id: read\n- criterion: it is fine\n\nRead on. {NEXT}a00.txt\n");
    let lab = Lab::new(config, &goal);
    for number in 0..files {
        let next = if number + 1 < files { format!("a{:02}.txt", number + 1) } else { then.to_owned() };
        let text = format!("{NEXT}{next}\nthis is file {number}\n");
        std::fs::write(lab.project().join(format!("a{number:02}.txt")), text).expect("ours");
    }
    lab.git(&["add", "-A"]);
    lab.git(&["commit", "-q", "-m", "files"]);
    lab
}

/// Another machine: a data directory of its own, and a clone of the project with its branch.
fn other_machine(lab: &Lab) -> Lab {
    let other = Lab::empty();
    let from = lab.project();
    let (from, to) = (from.to_str().expect("text"), other.project());
    other.git_in(&other.path("."), &["clone", "-q", from, to.to_str().expect("text")]);
    let branches = lab.git(&["branch", "--list", "longhaul/*", "--format", "%(refname:short)"]);
    for branch in branches.lines() {
        other.git(&["fetch", "-q", "origin", &format!("{branch}:{branch}")]);
    }
    other
}

/// Takes a run, or an agent's part of it, to another machine.
fn moved(lab: &Lab, key: &str) -> Lab {
    let file = lab.path("checkpoint.json");
    let file = file.to_str().expect("text");
    lab.run(&["checkpoint", "export", key, "--output", file]).expect(0);
    let other = other_machine(lab);
    other.import(file).expect(0);
    other
}

/// Changes the record of a run's start, as a holder of a checkpoint can, and removes the signature.
fn forged(whole: &Value, change: impl FnOnce(&mut Value)) -> Value {
    let mut forged = whole.clone();
    forged.as_object_mut().expect("an object").remove("signed");
    let rows = forged["rows"].as_array_mut().expect("a list");
    let row = rows.iter_mut().find(|row| row["table"] == "runs").expect("a record");
    let bytes = BASE64.decode(row["value"].as_str().expect("text")).expect("base64");
    let mut record: Value = serde_json::from_slice(&bytes).expect("JSON");
    change(&mut record);
    row["value"] = json!(BASE64.encode(record.to_string()));
    forged
}

fn the_run(lab: &Lab) -> String {
    lab.runs().pop().expect("a run")
}

#[test]
fn what_a_checkpoint_says_is_not_believed() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let file = lab.path("checkpoint.json");
    lab.run(&["checkpoint", "export", &the_run(&lab), "--output", file.to_str().expect("text")]).expect(0);
    let whole: Value = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    let other = other_machine(&lab);
    let refused = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut changed = whole.clone();
        changed.as_object_mut().expect("an object").remove("signed");
        change(&mut changed);
        let path = other.path("changed.json");
        std::fs::write(&path, changed.to_string()).expect("ours");
        let ran = other.run(&["checkpoint", "import", path.to_str().expect("text"), "--unsigned"]);
        common::refused(&ran, &[expected]);
        assert!(other.runs().is_empty());
    };
    refused(&|all| all["longhaul_checkpoint"] = json!(2), "has version 2, and this longhaul reads 1");
    refused(&|all| *all = json!({}), "no checkpoint of longhaul");
    let again = "have the run exported again with `longhaul checkpoint export`";
    refused(&|all| all["run"] = json!("r-000000000000"), "its record says something else (run r-");
    refused(&|all| all["run"] = json!("r-000000000000"), again);
    // A run's name becomes a part of paths and of keys.
    for name in ["../../outside", "", "letters", "r-", "r-../../outside", "r-a/b"] {
        refused(&|all| all["run"] = json!(name), "is no name of a run");
        refused(&|all| all["run"] = json!(name), again);
    }
    let foreign = |all: &mut Value| all["rows"][1]["key"] = json!("ci0wMDAwMDAAAA==");
    refused(&foreign, "a row of something else (");
    refused(&foreign, "`r-000000\\x00\\x00`");
    refused(&foreign, again);
    refused(&|all| all["rows"] = json!([]), "has no record of run");
    refused(&|all| all["rows"] = json!([]), again);
    refused(
        &|all| all["commits"] = json!(["0123456789012345678901234567890123456789"]),
        "fetch `longhaul/kept` into it",
    );
    let outside = json!({ "tree": 0, "path": "../../outside", "executable": false, "content": "" });
    refused(&|all| all["files"] = json!([outside]), "would not be in the tree");
    // The configuration and the plugins are those of the project, not those of the imported run.
    let config = other.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&config).expect("there");
    std::fs::write(&config, format!("{text}\n[checks]\nfine = {{ argv = [\"false\"] }}\n")).expect("ours");
    refused(&|_| {}, "[checks] or settings of plugins than longhaul.toml has here (- [checks.fine] argv = [\"false\"]");
    let server = format!("server = \"{}\"", lab.fake.address);
    std::fs::write(&config, text.replace(&server, "server = \"127.0.0.1:9\"")).expect("ours");
    refused(&|_| {}, &format!("(+ [tools.poster.settings] {server}; "));
    refused(&|_| {}, "- [tools.poster.settings] server = \"127.0.0.1:9\"");
    std::fs::write(&config, text.replacen("name = \"kept\"", "name = \"other\"", 1)).expect("ours");
    refused(&|_| {}, "is project `other`, and the run is of `kept`; name a checkout of that one with --project");
    std::fs::write(&config, text).expect("ours");
    other.import(file.to_str().expect("text")).expect(0);
    // A signer that was named once is known.
    common::refused(&other.run(&["checkpoint", "import", file.to_str().expect("text")]), &["is here already"]);
}

#[test]
fn an_archived_run_is_in_the_list_where_it_is_imported() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let run = the_run(&lab);
    lab.run(&["pause", &run]).expect(0);
    lab.run(&["runs", "archive", &run]).expect(0);
    assert!(lab.runs().is_empty());
    let other = moved(&lab, &run);
    assert_eq!(other.runs(), [run]);
}

/// A checkpoint whose own longhaul.toml had another name used to take the place of the configuration here: its command
/// ran at a notification.
#[test]
fn a_checkpoint_brings_no_configuration_along() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let file = lab.path("checkpoint.json");
    lab.run(&["checkpoint", "export", &the_run(&lab), "--output", file.to_str().expect("text")]).expect(0);
    let whole: Value = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    let other = other_machine(&lab);
    let (path, ran) = (other.path("forged.json"), other.path("it-ran"));
    let evil = format!("\n[notify]\ncommand = [\"touch\", \"{}\"]\n", ran.display());
    let take = |checkpoint: &Value| {
        std::fs::write(&path, checkpoint.to_string()).expect("ours");
        other.run(&["checkpoint", "import", path.to_str().expect("text"), "--unsigned"])
    };
    let config = |record: &Value| record["config"].as_str().expect("text").to_owned();
    let renamed = forged(&whole, |record| {
        record["config"] = json!(format!("{}{evil}", config(record).replacen("name = \"", "name = \"not-", 1)));
    });
    common::refused(&take(&renamed), &["nobody exported it so", "is of `not-kept`", "longhaul checkpoint export"]);
    let notified = forged(&whole, |record| record["config"] = json!(format!("{}{evil}", config(record))));
    common::refused(&take(&notified), &["other powers than longhaul.toml gives here (+ [notify] starts `touch"]);
    let shown = other.run(&["checkpoint", "show", path.to_str().expect("text")]).expect(0).stdout;
    assert!(shown.contains("unsigned") && shown.contains("[notify] starts `touch"), "{shown}");
    // Another component than the one that the file names.
    let swapped = forged(&whole, |record| record["pins"]["evaluator"]["plugin"] = json!("./evil.wasm"));
    let expected = ["the run has plugin `./evil.wasm` for [evaluator]", "write under [evaluator]: plugin = "];
    common::refused(&take(&swapped), &expected);
    assert!(other.runs().is_empty() && !ran.exists());
    // The imported run continues by the file of this project.
    take(&forged(&whole, |_| {})).expect(0);
    let here = other.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&here).expect("there");
    std::fs::write(&here, text.replacen("name = \"", "name = \"not-", 1)).expect("ours");
    common::refused(&other.run(&["resume"]), &["set [project] name back"]);
    std::fs::remove_file(&here).expect("there");
    other.run(&["status"]).expect(0);
    assert!(!ran.exists());
}

#[test]
fn a_checkpoint_that_was_changed_or_is_of_nobody_known_is_refused() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let file = lab.path("checkpoint.json");
    lab.run(&["checkpoint", "export", &the_run(&lab), "--output", file.to_str().expect("text")]).expect(0);
    let key = lab.run(&["trust", "key"]).expect(0).stdout.trim().to_owned();
    let other = other_machine(&lab);
    let import = |file: &Path, flags: &[&str]| {
        other.run(&[&["checkpoint", "import", file.to_str().expect("text")], flags].concat())
    };
    common::refused(&import(&file, &[]), &["which is unknown here", &format!("add --signer {key}")]);
    common::refused(&import(&file, &["--unsigned"]), &["which is unknown here"]);
    let (whole, changed) = (std::fs::read(&file).expect("written"), other.path("changed.json"));
    for (from, to) in
        [("\"status\":", "\"status\": "), ("\"taken_ms\":1", "\"taken_ms\":2"), ("\"files\"", "\"x\":1,\"files\"")]
    {
        let text = String::from_utf8_lossy(&whole).replacen(from, to, 1);
        assert_ne!(text.as_bytes(), whole, "{from}");
        std::fs::write(&changed, text).expect("ours");
        let signed = format!("not what its signer signed ({key})");
        common::refused(&import(&changed, &["--signer", &key]), &[&signed, "again"]);
    }
    let unsigned = forged(&serde_json::from_slice(&whole).expect("JSON"), |_| {});
    std::fs::write(&changed, unsigned.to_string()).expect("ours");
    common::refused(&import(&changed, &[]), &["is unsigned", "--unsigned"]);
    common::refused(&import(&changed, &["--signer", &key]), &["is unsigned, and not signed by"]);
    assert!(other.runs().is_empty());
    let shown = other.run(&["checkpoint", "show", file.to_str().expect("text")]).expect(0).stdout;
    assert!(shown.contains(&format!("signed by {key}, which is unknown here")), "{shown}");
    // The signer and the requested powers are printed where a person reads them.
    let taken = import(&file, &["--signer", &key]).expect(0);
    let from = format!("the checkpoint is signed by {key}, which is unknown here\n");
    let asked = "its longhaul.toml, which is not used here, asks for: [tools.poster] reaches http://127.0.0.1:";
    assert!(taken.stderr.contains(&from) && taken.stderr.contains(asked), "{}", taken.said());
    assert!(!taken.stdout.contains(&key), "{}", taken.said());
    let shown = other.run(&["checkpoint", "show", file.to_str().expect("text")]).expect(0).stdout;
    assert!(shown.contains("which is known here"), "{shown}");
}

/// An approval from another machine used to count here: any author of a checkpoint could forge one.
#[test]
fn what_a_person_allowed_elsewhere_is_asked_here_again() {
    let call = || json!([gated::post("a")]);
    // An answer that was not used yet, and a rule for the rest of the run.
    for words in ["y", "a"] {
        let lab = gated::lab(&call(), &json!([]));
        lab.run(&["run"]).expect(5);
        let asked = gated::the_open(&lab);
        gated::answer(&lab, &asked, words).expect(0);
        let other = moved(&lab, &the_run(&lab));
        other.run(&["resume"]).expect(5);
        assert!(gated::posted(&lab).is_empty(), "`{words}` was given elsewhere");
        assert_eq!(gated::the_open(&other), asked, "the same question");
        gated::answer(&other, &asked, "y").expect(0);
        other.run(&["resume"]).expect(0);
        assert_eq!(gated::posted(&lab), ["a"]);
    }
}

/// As if the other machine had died between the decision, which is in the journal then, and the call.
#[test]
fn leave_that_only_the_journal_has_is_asked_for_again() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let asked = gated::the_open(&lab);
    gated::answer(&lab, &asked, "y").expect(0);
    let ran = lab.start_with(&["resume"], &[("LONGHAUL_CRASH_AT", "tool.before-call:1")]).wait();
    assert!(ran.was_killed(), "{}", ran.said());
    let file = lab.path("checkpoint.json");
    lab.run(&["checkpoint", "export", &the_run(&lab), "--output", file.to_str().expect("text")]).expect(0);
    let mut whole: Value = serde_json::from_slice(&std::fs::read(&file).expect("written")).expect("JSON");
    let rows = whole["rows"].as_array_mut().expect("a list");
    let says = |row: &Value, text: &str| {
        let value = BASE64.decode(row["value"].as_str().expect("text")).expect("base64");
        row["table"] == "journal" && String::from_utf8_lossy(&value).contains(text)
    };
    let count = rows.len();
    rows.retain(|row| !says(row, "\"tools.call\""));
    assert!(rows.len() < count && rows.iter().any(|row| says(row, "allowed")), "a decision, and no call");
    whole.as_object_mut().expect("an object").remove("signed");
    std::fs::write(&file, whole.to_string()).expect("ours");
    let other = other_machine(&lab);
    other.run(&["checkpoint", "import", file.to_str().expect("text"), "--unsigned"]).expect(0);
    other.run(&["resume"]).expect(5);
    assert!(gated::posted(&lab).is_empty());
    assert_eq!(gated::the_open(&other), asked, "the same question");
}

/// The checkpoints that were told, by their steps.
fn told(lab: &Lab) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|line| line["type"] == "checkpoint").map(|line| line["payload"].clone()).collect()
}

#[test]
fn each_checkpoint_is_an_event_and_none_is_told_twice() {
    let lab = reader(6, "finish");
    let mut started = lab.start(&["run"]);
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "model", number: 5, happens: false });
    while started.is_running() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(started.wait().was_killed());
    lab.run(&["resume"]).expect(0);
    let listed = lab.json(&["checkpoint", "list"]);
    let listed = listed["checkpoints"].as_array().expect("a list");
    let of = |all: &[Value]| -> Vec<(Value, Value, Value)> {
        all.iter().map(|one| (one["step"].clone(), one["entries"].clone(), one["cause"].clone())).collect()
    };
    assert_eq!(listed.len(), 3);
    assert_eq!(of(&told(&lab)), of(listed));
    let gated = gated::lab(&json!([gated::post("a")]), &json!([]));
    gated.run(&["run"]).expect(5);
    gated::answer(&gated, &gated::the_open(&gated), "y").expect(0);
    gated.run(&["resume"]).expect(0);
    let told = told(&gated);
    assert_eq!((told.len(), &told[0]["cause"]), (1, &json!("approval")), "{told:?}");
}

#[test]
fn a_parked_run_is_taken_over_by_one_machine_and_no_more_by_the_other() {
    let server = RedisServer::start();
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    let config = lab.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&config).expect("there");
    let shared = format!("{text}\n[checkpoints.redis]\nurl = \"{}\"\n", server.url());
    std::fs::write(&config, shared).expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "share runs"]);
    lab.run(&["run"]).expect(5);
    let run = the_run(&lab);

    let other = other_machine(&lab);
    let listed = other.run(&["checkpoint", "list", "--shared"]).expect(0).stdout;
    assert!(listed.contains(&run), "{listed}");
    // A process works on it, so no other one may.
    let held = SharedRuns::new(&RedisConfig::at(&server.url()), &|_| None, Path::new("/")).expect("fits");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let lease = runtime.block_on(held.acquire(&run, "somebody", 600_000, true)).expect("free");
    common::refused(&other.run(&["checkpoint", "import", "--shared", &run]), &["is worked on by somebody"]);
    common::refused(&lab.run(&["resume"]), &["is worked on by somebody"]);
    runtime.block_on(held.release(&lease)).expect("given back");

    let unknown = other.run(&["checkpoint", "import", "--shared", &run]);
    common::refused(&unknown, &["which is unknown here", "add --signer"]);
    let key = unknown.stderr.trim().rsplit(' ').next().expect("a key").to_owned();
    // A writer of the server is not the signer.
    let answer = server.ask(&["GET", &format!("longhaul:ckp:{run}")]);
    let honest =
        answer.split_once("\r\n").and_then(|(_, rest)| rest.rsplit_once("\r\n+OK")).expect("a value").0.to_owned();
    let whole: Value = serde_json::from_str(&honest).expect("JSON");
    let evil = "\n[notify]\ncommand = [\"touch\", \"/tmp/never\"]\n";
    let mut changed = forged(&whole, |record| {
        record["config"] = json!(format!("{}{evil}", record["config"].as_str().expect("text")));
    });
    changed["signed"] = whole["signed"].clone();
    server.ask(&["SET", &format!("longhaul:ckp:{run}"), &changed.to_string()]);
    let ran = other.run(&["checkpoint", "import", "--shared", &run, "--signer", &key]);
    common::refused(&ran, &["not what its signer signed"]);
    server.ask(&["SET", &format!("longhaul:ckp:{run}"), &honest]);
    let taken = other.run(&["checkpoint", "import", "--shared", &run, "--signer", &key]).expect(0);
    assert!(taken.stderr.contains(&format!("the checkpoint is signed by {key}")), "{}", taken.said());
    assert!(taken.stderr.contains("asks for: [checkpoints.redis] sends to redis://"), "{}", taken.said());
    gated::answer(&other, &gated::the_open(&other), "y").expect(0);
    other.run(&["resume"]).expect(0);
    assert_eq!(gated::posted(&lab), ["a"]);
    gated::answer(&lab, &gated::the_open(&lab), "y").expect(0);
    common::refused(&lab.run(&["resume"]), &["another machine has gone on with run"]);
    // An import that comes to nothing does not make what is here the run again.
    common::refused(&lab.run(&["checkpoint", "import", "--shared", &run, "--replace"]), &["is not on the server"]);
    common::refused(&lab.run(&["resume"]), &["another machine has gone on with run"]);
    assert_eq!(gated::posted(&lab), ["a"], "the effect happened once");
    let listed = other.run(&["checkpoint", "list", "--shared"]).expect(0).stdout;
    assert!(!listed.contains(&run), "a run that is over waits for nobody: {listed}");
}

#[test]
fn a_machine_whose_lease_was_taken_stops_its_work() {
    let server = RedisServer::start();
    let lab = gated::lab_with(&json!([gated::post("a"), gated::post("b"), gated::post("c")]), &json!([]), "");
    lab.fake.posts_take(std::time::Duration::from_secs(3));
    let config = lab.project().join("longhaul.toml");
    let text = std::fs::read_to_string(&config).expect("there");
    let shared = format!("{text}\n[checkpoints]\nlease_ms = 1000\nredis = {{ url = \"{}\" }}\n", server.url());
    std::fs::write(&config, shared).expect("ours");
    lab.git(&["commit", "-q", "-a", "-m", "share runs"]);
    let mut started = lab.start(&["run"]);
    while lab.fake.posts().is_empty() {
        assert!(started.is_running(), "{}", started.printed());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let run = the_run(&lab);
    let thief = SharedRuns::new(&RedisConfig::at(&server.url()), &|_| None, Path::new("/")).expect("fits");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    server.ask(&["DEL", &format!("longhaul:lease:{run}")]);
    runtime.block_on(thief.acquire(&run, "thief", 600_000, true)).expect("taken");
    let ran = started.wait();
    assert!(ran.stderr.contains("the work stops here") && ran.code() == Some(1), "{}", ran.said());
    assert!(gated::posted(&lab).len() < 3, "it went on without the lease");
    common::refused(&lab.run(&["resume"]), &["is worked on by thief"]);
    assert_eq!(runtime.block_on(thief.list()).expect("listed"), Vec::<String>::new(), "its late snapshot is not taken");
}

#[test]
fn what_is_over_and_what_is_old_is_removed_on_demand() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    let run = the_run(&lab);
    lab.run(&["checkpoint", "export", &run, "--save", "kept"]).expect(0);
    lab.run(&["checkpoint", "export", &run, "--save", "over", "--ttl-s", "0"]).expect(0);
    common::refused(&lab.run(&["checkpoint", "import", "over", "--saved"]), &["nothing is saved as `over`"]);
    let swept = lab.json(&["gc"]);
    assert_eq!([&swept["checkpoints"], &swept["memories"]], [1, 0]);
    std::thread::sleep(std::time::Duration::from_millis(20));
    let swept = lab.json(&["gc", "--older-than", "0s"]);
    assert_eq!([&swept["checkpoints"], &swept["memories"]], [1, 0]);
}
