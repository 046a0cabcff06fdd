//! What an operator does with a machine that runs agents: look at what is used, bound it, back it up, clear it, and find
//! out what is wrong.

mod common;

use common::lab::{Lab, Started};
use common::terminal::Terminal;
use common::{DOER_CONFIG, gated, repository};
use longhaul_core::store::{Batch, Key, Op, Store as _, Table};
use longhaul_store::{Options, RedbStore};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long something may take to be seen before its test fails.
const PATIENCE: Duration = Duration::from_secs(120);

const TWO: &str = "# Two\n
## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n
## Feature: the second\n- id: two\n- check: has_two\n\nDo it, too.\n";

/// A project whose only feature passes, whatever is done.
fn passing() -> Lab {
    let config = "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\nsettings = { calls = [] }\n\
                  [evaluator]\nplugin = \"lenient\"\n[run.limits]\niterations_max = 1\n";
    Lab::new(config, "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n")
}

/// A project whose only feature is judged by this check.
fn judged_by(argv: &[&str]) -> Lab {
    let config = format!(
        "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\nsettings = {{ calls = [] }}\n\
         [checks]\nfine = {{ argv = {} }}\n[run.limits]\niterations_max = 1\n",
        json!(argv)
    );
    Lab::new(&config, "# Goal\n\n## Feature: the first\n- id: one\n- check: fine\n\nDo it.\n")
}

fn resources(lab: &Lab, text: &str) {
    fs::create_dir_all(lab.home()).expect("ours");
    fs::set_permissions(lab.home(), fs::Permissions::from_mode(0o700)).expect("ours");
    fs::write(lab.home().join("resources.toml"), text).expect("ours");
}

/// Asks until it is so; what was answered then.
#[track_caller]
fn until(lab: &Lab, owner: &mut Started, args: &[&str], is_so: impl Fn(&Value) -> bool) -> Value {
    let since = Instant::now();
    loop {
        let answer = lab.json(args);
        if is_so(&answer) {
            return answer;
        }
        assert!(owner.is_running() && since.elapsed() < PATIENCE, "{answer:#}\n{}", owner.printed());
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn list<'a>(answer: &'a Value, name: &str) -> &'a [Value] {
    answer[name].as_array().map_or_else(|| panic!("no `{name}`: {answer:#}"), Vec::as_slice)
}

#[test]
fn a_check_that_takes_too_much_memory_is_ended_and_everybody_is_told_why() {
    let greedy = "import time\nheld = b'x' * (300 << 20)\ntime.sleep(900)";
    let lab = judged_by(&["python3", "-c", greedy]);
    resources(&lab, "[program]\nmax_memory_mb = 200.0\n");
    let mut owner = lab.start(&["run"]);
    let seen = until(&lab, &mut owner, &["ps"], |ps| !list(ps, "ended").is_empty());
    let ended = &list(&seen, "ended")[0];
    assert_eq!([&ended["kind"], &ended["name"]], [&json!("program"), &json!("check fine")], "{ended}");
    assert!(ended["reason"].as_str().is_some_and(|why| why.contains("max_memory_mb")), "{ended}");
    let ran = owner.wait().expect(3);
    assert!(ran.stdout.contains("max_memory_mb"), "{}", ran.said());
}

#[test]
fn a_child_is_listed_with_what_it_uses_and_ended_by_its_number() {
    let lab = judged_by(&["sleep", "900"]);
    let mut owner = lab.start(&["run"]);
    let is_there = |ps: &Value| list(ps, "children").iter().any(|child| child["name"] == "check fine");
    let seen = until(&lab, &mut owner, &["ps"], is_there);
    let child = list(&seen, "children").iter().find(|child| child["name"] == "check fine").expect("seen");
    assert!(child["usage"]["memory_mb"].as_f64().is_some_and(|mb| mb > 0.0), "{child}");
    assert!(child["limits"]["max_processes"].as_u64().is_some(), "{child}");
    assert!(seen["system"]["memory_total_mb"].as_f64().is_some_and(|mb| mb > 0.0), "{seen}");
    assert_eq!(seen["pid"], owner.pid());
    assert_eq!(list(&seen, "runs").len(), 1, "{seen}");
    let words = lab.run(&["ps"]).expect(0).stdout;
    assert!(words.contains("program `check fine`") && words.contains("machine "), "{words}");
    let once = lab.run(&["top", "--once"]).expect(0).stdout;
    assert!(once.contains("program `check fine`"), "{once}");

    common::refused(&lab.run(&["ps", "--end", "1"]), &["was not started by this longhaul"]);
    common::refused(&lab.run(&["ps", "--end", "4194304"]), &["is not there any more"]);
    lab.run(&["ps", "--end", &child["pid"].to_string()]).expect(0);
    // A check is run more than once: before the work, too.
    while owner.is_running() {
        let now = lab.json(&["ps"]);
        for child in list(&now, "children").iter().filter(|child| child["name"] == "check fine") {
            lab.run(&["ps", "--end", &child["pid"].to_string()]);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    owner.wait().expect(3);
}

#[test]
fn top_draws_again_and_again_until_q() {
    let lab = passing();
    let mut terminal = Terminal::start(&lab, &["top", "--every", "1"], &[]);
    terminal.wait_for("machine ", 2);
    terminal.types("q");
    let (status, screen) = terminal.wait();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(screen.contains("q ends"), "{screen}");
}

#[test]
fn an_instance_is_listed_with_its_memory_and_fuel_while_it_works() {
    let lab = Lab::new(DOER_CONFIG, TWO);
    lab.fake.model_takes(Duration::from_millis(400));
    let mut owner = lab.start(&["run"]);
    let works = |guest: &Value| guest["plugin"] == "agents.code" && guest["fuel"].as_u64() > Some(0);
    let seen = until(&lab, &mut owner, &["ps"], |ps| list(ps, "guests").iter().any(works));
    let guest = list(&seen, "guests").iter().find(|guest| works(guest)).expect("seen");
    let number = |field: &str| guest[field].as_f64().unwrap_or(-1.0);
    assert!(number("memory_mb") > 0.0 && number("memory_mb") <= number("memory_max_mb"), "{guest}");
    assert!(number("fuel") <= number("fuel_max"), "{guest}");
    let run = &list(&seen, "runs")[0];
    assert!(run["guests"].as_u64() >= Some(1) && run["project"] == "kept", "{run}");
    owner.wait().expect(0);
}

#[test]
fn history_is_kept_while_somebody_owns_the_data_directory() {
    let lab = judged_by(&["sleep", "900"]);
    let mut owner = lab.start(&["run"]);
    let samples = until(&lab, &mut owner, &["ps", "--history", "1"], |samples| {
        samples.as_array().is_some_and(|samples| !samples.is_empty())
    });
    let sample = &samples[0];
    assert!(sample["at_ms"].as_u64().is_some_and(|at| at > 0), "{sample}");
    assert!(sample["host"]["memory_mb"].as_f64().is_some_and(|mb| mb > 0.0), "{sample}");
    owner.kill();
}

#[test]
fn a_run_for_which_there_is_no_room_waits_says_so_and_begins_when_there_is() {
    let lab = passing();
    resources(&lab, "[reserve]\nmemory_mb = 1000000000.0\n");
    let mut owner = lab.start(&["run"]);
    owner.wait_for("waits for room on this machine");
    let status = lab.json(&["status"]);
    let why = status["why"].as_str().unwrap_or_default();
    assert!(why.contains("waits for room") && why.contains("1000000000"), "{status}");
    let ps = lab.json(&["ps"]);
    assert!(list(&ps, "runs")[0]["waits"].as_str().is_some_and(|why| why.contains("MB")), "{ps}");
    resources(&lab, "[reserve]\nmemory_mb = 1.0\n");
    owner.wait().expect(0);
    assert!(!lab.json(&["status"])["why"].as_str().unwrap_or_default().contains("waits for room"));
}

#[test]
fn a_run_that_waits_for_room_can_be_paused_and_goes_on_later() {
    let lab = passing();
    resources(&lab, "[reserve]\nmemory_mb = 1000000000.0\n");
    let mut owner = lab.start(&["run"]);
    owner.wait_for("waits for room on this machine");
    owner.interrupt();
    owner.wait().expect(4);
    resources(&lab, "");
    lab.run(&["resume"]).expect(0);
}

#[test]
fn a_task_of_an_agent_waits_for_room_and_runs_when_there_is_some() {
    let lab = Lab::empty();
    fs::write(lab.path("a.js"), "console.log('done')").expect("ours");
    resources(&lab, "[reserve]\nmemory_mb = 1000000000.0\n");
    lab.run(&["agent", "add", "small", "--js", "a.js"]).expect(0);
    lab.run(&["schedule", "add", "s", "--agent", "small", "--paused"]).expect(0);
    lab.run(&["schedule", "run-now", "s"]).expect(0);
    let mut owner = lab.start(&["schedule", "work"]);
    let waits = |task: &Value| task["waits"].as_str().is_some_and(|why| why.contains("room on this machine"));
    until(&lab, &mut owner, &["ps"], |ps| list(ps, "tasks").iter().any(waits));
    resources(&lab, "[reserve]\nmemory_mb = 1.0\n");
    until(&lab, &mut owner, &["schedule", "tasks"], |tasks| tasks["tasks"][0]["status"] == "completed");
    owner.interrupt();
}

#[test]
fn a_backup_that_is_made_while_a_run_goes_on_is_whole() {
    let lab = Lab::new(DOER_CONFIG, TWO);
    lab.fake.model_takes(Duration::from_millis(200));
    lab.set_own_secret("token", "hush-hush");
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    let file = lab.path("kept.backup");
    let file = file.to_str().expect("text");
    let made = lab.json(&["backup", file]);
    assert!(made["rows"].as_u64().is_some_and(|rows| rows > 0), "{made}");
    assert!(owner.is_running(), "nothing was stopped for it");
    assert!(list(&made, "left_out")[0].as_str().is_some_and(|left| left.contains("is worked on")), "{made}");
    assert_eq!(fs::metadata(file).expect("made").permissions().mode() & 0o777, 0o600);
    common::refused(&lab.run(&["backup", file]), &["is there already"]);
    owner.wait().expect(0);

    let home = lab.path("other-home");
    let key = made["signer"].as_str().expect("signed").to_owned();
    let unknown = lab.run_at(&home, &["restore", file]);
    common::refused(&unknown, &["cannot be restored", "which is unknown here", &format!("add --signer {key}")]);
    let restored = lab.run_at(&home, &["--json", "restore", file, "--signer", &key]).expect(0);
    let restored: Value = serde_json::from_str(&restored.stdout).expect("JSON");
    assert_eq!(restored["manifest"]["rows"], made["rows"]);
    assert!(!home.join("secrets").exists(), "nobody asked for secrets");
    assert_eq!(fs::metadata(&home).expect("made").permissions().mode() & 0o777, 0o700);
    let runs = lab.run_at(&home, &["runs"]).expect(0).stdout;
    assert!(runs.contains("broken off"), "as after a kill: {runs}");
    lab.run_at(&home, &["doctor", "--store"]).expect(0);
    common::refused(&lab.run_at(&home, &["restore", file]), &["is not empty"]);
}

#[test]
fn a_run_goes_on_where_a_backup_was_restored_and_nothing_is_done_twice() {
    let lab = Lab::new(DOER_CONFIG, TWO);
    lab.set_own_secret("token", "hush-hush");
    lab.run(&["run", "--sessions", "1"]).expect(4);
    let before = lab.fake.posts().len();
    let file = lab.path("kept.backup");
    let made = lab.json(&["backup", "--with-secrets", file.to_str().expect("text")]);
    fs::rename(lab.home(), lab.path("lost")).expect("ours");
    let signer = made["signer"].as_str().expect("signed");
    let told = lab.run(&["restore", file.to_str().expect("text"), "--signer", signer]).expect(0);
    assert!(told.stdout.contains("all as they were written"), "{}", told.said());
    let secret = lab.home().join("secrets/token");
    assert_eq!(fs::metadata(&secret).expect("restored").permissions().mode() & 0o777, 0o600);
    lab.run(&["resume"]).expect(0);
    let posts = lab.fake.posts();
    assert!(posts.len() > before);
    let mut keys: Vec<_> = posts.iter().map(|told| &told.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), posts.len(), "each effect once");
}

/// Changes a copy of a backup, and tries to restore it.
#[track_caller]
fn refused_after(lab: &Lab, file: &Path, change: impl FnOnce(&mut Vec<u8>), words: &[&str]) {
    let mut bytes = fs::read(file).expect("made");
    change(&mut bytes);
    let changed = lab.path("changed.backup");
    fs::write(&changed, bytes).expect("ours");
    let home = lab.path("never");
    common::refused(&lab.run_at(&home, &["restore", changed.to_str().expect("text")]), words);
    assert!(!home.exists(), "nothing is left");
    let left = fs::read_dir(lab.path("")).expect("ours").flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("restore-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_backup_that_was_damaged_or_cut_off_is_refused_and_leaves_nothing() {
    let lab = passing();
    lab.run(&["run"]).expect(0);
    let file = lab.path("kept.backup");
    lab.run(&["backup", file.to_str().expect("text")]).expect(0);
    let cannot = "cannot be restored";
    refused_after(&lab, &file, |bytes| bytes.truncate(bytes.len() / 2), &[cannot]);
    refused_after(&lab, &file, |bytes| bytes.truncate(bytes.len() - 200), &[cannot]);
    for part in 1..8 {
        let flip = |bytes: &mut Vec<u8>| {
            let at = bytes.len() * part / 8;
            bytes[at] ^= 0x55;
        };
        refused_after(&lab, &file, flip, &[cannot]);
    }
    refused_after(&lab, &file, Vec::clear, &[cannot]);
    refused_after(&lab, &file, |bytes| *bytes = b"not a backup at all".to_vec(), &[cannot]);
    let traps = [("../out", "no file of a data directory"), ("plugins/../../out", "no file of a data directory")];
    for (path, words) in traps {
        refused_after(&lab, &file, |bytes| *bytes = archive_with(path, b'0'), &[cannot, words]);
    }
    // Through a link, the state would be read and written where it leads.
    for path in ["state.redb", "server.toml", "trees/r-1"] {
        refused_after(&lab, &file, |bytes| *bytes = archive_with(path, b'2'), &[cannot, "is a link"]);
    }
}

/// An archive with other files in it: `change` is handed each with its path, and gives what is to be there.
fn repacked(file: &Path, change: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>) -> Vec<u8> {
    let decoder = zstd::Decoder::new(fs::File::open(file).expect("made")).expect("zstd");
    let (mut archive, mut out) = (tar::Archive::new(decoder), tar::Builder::new(Vec::new()));
    for entry in archive.entries().expect("tar") {
        let mut entry = entry.expect("tar");
        let (mut header, path) = (entry.header().clone(), entry.path().expect("a path").into_owned());
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).expect("read");
        let Some(bytes) = change(path.to_str().expect("text"), bytes) else { continue };
        header.set_size(bytes.len() as u64);
        out.append_data(&mut header, path, &bytes[..]).expect("in memory");
    }
    zstd::encode_all(&out.into_inner().expect("in memory")[..], 1).expect("in memory")
}

/// A restored backup used to bring the commands and the tokens of whoever wrote it, and nobody could tell who that was.
#[test]
fn a_backup_brings_no_commands_and_no_tokens_and_no_changed_byte() {
    let lab = passing();
    fs::create_dir_all(lab.home()).expect("ours");
    fs::set_permissions(lab.home(), fs::Permissions::from_mode(0o700)).expect("ours");
    fs::write(lab.home().join("server.toml"), "[notify]\ncommand = [\"touch\", \"/nowhere\"]\n").expect("ours");
    lab.run(&["token", "add", "author", "--scope", "admin"]).expect(0);
    let file = lab.path("kept.backup");
    let made = lab.json(&["backup", file.to_str().expect("text")]);
    let key = made["signer"].as_str().expect("signed").to_owned();
    let restore = |home: &str, file: &Path, flags: &[&str]| {
        lab.run_at(&lab.path(home), &[&["restore", file.to_str().expect("text")], flags].concat())
    };
    // Each change with its digest in the manifest, as whoever writes an archive can.
    let evil = b"[notify]\ncommand = [\"touch\", \"/evil\"]\n".to_vec();
    let with_evil = |path: &str, bytes: Vec<u8>, signed: bool| match path {
        "server.toml" => Some(evil.clone()),
        "manifest.json" => {
            let mut manifest: Value = serde_json::from_slice(&bytes).expect("JSON");
            if !signed {
                manifest.as_object_mut().expect("an object").remove("signer");
            }
            for entry in manifest["files"].as_array_mut().expect("a list").iter_mut() {
                if entry["path"] == "server.toml" {
                    entry["bytes"] = json!(evil.len());
                    entry["sha256"] = json!(longhaul_core::Digest::of(&evil).to_string());
                }
            }
            Some(serde_json::to_vec(&manifest).expect("JSON"))
        }
        "manifest.json.minisig" if !signed => None,
        _ => Some(bytes),
    };
    let changed = lab.path("changed.backup");
    fs::write(&changed, repacked(&file, |path, bytes| with_evil(path, bytes, true))).expect("ours");
    common::refused(&restore("a", &changed, &["--signer", &key]), &["not what its signer signed"]);
    fs::write(&changed, repacked(&file, |path, bytes| with_evil(path, bytes, false))).expect("ours");
    common::refused(&restore("a", &changed, &["--signer", &key]), &["is unsigned, and not signed by"]);
    common::refused(&restore("a", &changed, &[]), &["is unsigned", "add --unsigned"]);
    fs::write(&changed, repacked(&file, |path, bytes| (path != "manifest.json.minisig").then_some(bytes)))
        .expect("ours");
    common::refused(&restore("a", &changed, &["--signer", &key]), &["has no signature"]);
    assert!(!lab.path("a").exists());

    let told = restore("b", &file, &["--signer", &key]).expect(0).stdout;
    assert!(told.contains(&key) && told.contains("1 API tokens") && told.contains("server.toml.restored"), "{told}");
    assert!(!lab.path("b").join("server.toml").exists());
    let tokens = |home: &str| lab.run_at(&lab.path(home), &["token", "list"]).expect(0).stdout;
    assert_eq!(tokens("b"), "");
    restore("c", &file, &["--signer", &key, "--with-tokens", "--with-commands"]).expect(0);
    assert!(tokens("c").contains("author") && lab.path("c").join("server.toml").exists());
}

/// The rows of a data directory, as whoever can write its file changes them.
fn change_rows(lab: &Lab, change: impl FnOnce(&RedbStore) -> Vec<Op>) {
    let store = RedbStore::open(&lab.home(), Options::default()).expect("nobody has it");
    let ops = change(&store);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(store.commit(Batch { ops })).expect("written");
}

#[test]
fn an_audit_log_that_was_changed_or_cut_off_is_told_by_its_record() {
    let lab = passing();
    for name in ["one", "two", "three"] {
        lab.run(&["token", "add", name, "--scope", "admin"]).expect(0);
    }
    let verify = |more: &[&str]| lab.run(&[&["audit", "verify"], more].concat());
    let whole = lab.json(&["audit", "verify"]);
    let last = whole["last"].as_str().expect("a digest").to_owned();
    assert_eq!(whole["records"], 3, "{whole}");
    assert!(verify(&["--expect", &last]).expect(0).stdout.contains(&last));
    common::refused(&verify(&["--expect", &"0".repeat(64)]), &["no record with that digest", "or it is another log"]);
    let row = |number: u64| Key::of("audit").number(number);
    let get = |store: &RedbStore, number| store.get(Table::States, &row(number)).expect("read").expect("there");
    change_rows(&lab, |store| {
        let changed = String::from_utf8(get(store, 2)).expect("text").replace("\"two\"", "\"six\"");
        vec![Op::Put(Table::States, row(2), changed.into_bytes())]
    });
    let how = "the audit log breaks at record 3: it does not follow record 2: one of the two was changed";
    common::refused(&verify(&[]), &[how]);
    common::refused(&verify(&["--expect", &last]), &[how]);
    let broken: Value = serde_json::from_str(&lab.run(&["--json", "audit", "verify"]).stdout).expect("JSON");
    assert_eq!((&broken["records"], &broken["broken"][0]), (&json!(2), &json!(3)), "{broken}");
    change_rows(&lab, |store| {
        let changed = String::from_utf8(get(store, 2)).expect("text").replace("\"six\"", "\"two\"");
        vec![Op::Put(Table::States, row(2), changed.into_bytes())]
    });
    verify(&["--expect", &last]).expect(0);
    // A tail that is missing shows only against a digest that was kept.
    change_rows(&lab, |_| vec![Op::Delete(Table::States, row(3))]);
    assert!(verify(&[]).expect(0).stdout.starts_with("2 records"));
    common::refused(&verify(&["--expect", &last]), &["no record with that digest: records were cut off"]);
}

#[test]
fn a_rule_is_in_the_audit_log_with_what_it_allows() {
    let lab = gated::lab(&json!([gated::post("a")]), &json!([]));
    lab.run(&["run"]).expect(5);
    gated::answer(&lab, &gated::the_open(&lab), "a").expect(0);
    let log = lab.run(&["audit", "log"]).expect(0).stdout;
    let made = log.lines().find(|line| line.contains("rule made")).unwrap_or_else(|| panic!("{log}"));
    assert!(made.contains("text `poster.post` may be called with any arguments that are no command"), "{made}");
}

/// Somebody who can write an archive could leave the newest records of the audit log out of it.
#[test]
fn a_backup_whose_audit_log_is_another_one_is_refused() {
    let lab = passing();
    lab.run(&["token", "add", "one", "--scope", "admin"]).expect(0);
    let (early, late) = (lab.path("early.backup"), lab.path("late.backup"));
    let before = lab.json(&["backup", early.to_str().expect("text")]);
    lab.run(&["token", "add", "two", "--scope", "admin"]).expect(0);
    let after = lab.json(&["backup", late.to_str().expect("text")]);
    assert_eq!((&before["audit"]["records"], &after["audit"]["records"]), (&json!(1), &json!(2)));
    let state = std::cell::RefCell::new(Vec::new());
    repacked(&early, |path, bytes| {
        if path == "state.redb" {
            state.borrow_mut().clone_from(&bytes);
        }
        Some(bytes)
    });
    let state = state.into_inner();
    // With the digest of the older store in the manifest, which nobody signed.
    let changed = repacked(&late, |path, bytes| match path {
        "state.redb" => Some(state.clone()),
        "manifest.json" => {
            let mut manifest: Value = serde_json::from_slice(&bytes).expect("JSON");
            manifest.as_object_mut().expect("an object").remove("signer");
            manifest["rows"] = json!(0);
            for entry in manifest["files"].as_array_mut().expect("a list").iter_mut() {
                if entry["path"] == "state.redb" {
                    entry["bytes"] = json!(state.len());
                    entry["sha256"] = json!(longhaul_core::Digest::of(&state).to_string());
                }
            }
            Some(serde_json::to_vec(&manifest).expect("JSON"))
        }
        "manifest.json.minisig" => None,
        _ => Some(bytes),
    });
    let file = lab.path("changed.backup");
    fs::write(&file, changed).expect("ours");
    let home = lab.path("never");
    let refused = lab.run_at(&home, &["restore", file.to_str().expect("text"), "--unsigned"]);
    let last = after["audit"]["last"].as_str().expect("a digest");
    let expected = ["its audit log is not the one that was backed up, whose record 2", "none of its 1 records", last];
    common::refused(&refused, &expected);
    assert!(!home.exists());
    // As it was written it is put back, and its log goes on.
    let key = after["signer"].as_str().expect("signed");
    lab.run_at(&home, &["restore", late.to_str().expect("text"), "--signer", key]).expect(0);
    lab.run_at(&home, &["audit", "verify", "--expect", last]).expect(0);
}

/// A backup, as far as it is read, with a file of this path, or for the kind `2` a link.
fn archive_with(path: &str, kind: u8) -> Vec<u8> {
    let mut header = vec![0_u8; 512];
    header[..path.len()].copy_from_slice(path.as_bytes());
    for (at, text) in [(100, "0000600\0"), (108, "0000000\0"), (116, "0000000\0"), (124, "00000000000\0")] {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    header[157..168].copy_from_slice(b"/etc/passwd");
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header.extend([0; 1_024]);
    zstd::encode_all(&header[..], 1).expect("in memory")
}

#[test]
fn what_nobody_needs_goes_and_what_somebody_needs_stays() {
    let lab = passing();
    lab.run(&["run"]).expect(0);
    fs::write(
        lab.project().join("GOAL.md"),
        "# Goal\n\n## Feature: another\n- id: two\n- criterion: it is fine\n\nDo this.\n",
    )
    .expect("ours");
    lab.git(&["commit", "-qam", "another goal"]);
    lab.run(&["run"]).expect(0);
    let runs = lab.runs();
    assert_eq!(runs.len(), 2);
    let orphan = lab.home().join("trees/r-000000000000");
    fs::create_dir_all(&orphan).expect("ours");
    fs::write(orphan.join("file"), "content").expect("ours");
    std::thread::sleep(Duration::from_millis(20));

    let would = lab.json(&["gc", "--dry-run", "--runs-older-than", "0s"]);
    assert_eq!(would["runs"], json!([runs[0]]), "the newest of a project stays");
    assert_eq!([&would["trees"], &would["dry_run"]], [&json!(1), &json!(true)]);
    assert_eq!((lab.runs(), orphan.exists()), (runs.clone(), true), "nothing was removed");

    let did = lab.json(&["gc", "--runs-older-than", "0s"]);
    assert_eq!((&did["runs"], &did["rows"]), (&would["runs"], &would["rows"]));
    assert!(did["content"]["removed"].as_u64().is_some_and(|removed| removed > 0), "{did}");
    assert_eq!((lab.runs(), orphan.exists()), (vec![runs[1].clone()], false));
    assert_eq!(lab.json(&["status"])["status"], "completed");
    lab.run(&["replay"]).expect(0);
    lab.run(&["doctor", "--store"]).expect(0);
    let again = lab.json(&["gc", "--runs-older-than", "0s"]);
    assert_eq!([&again["runs"], &again["content"]["removed"]], [&json!([]), &json!(0)], "{again}");
}

#[test]
fn content_stays_while_a_run_is_worked_on() {
    let lab = judged_by(&["sleep", "900"]);
    let mut owner = lab.start(&["run"]);
    let is_there = |ps: &Value| list(ps, "children").iter().any(|child| child["name"] == "check fine");
    until(&lab, &mut owner, &["ps"], is_there);
    let kept = lab.json(&["gc"]);
    assert!(kept["content"].is_null(), "{kept}");
    assert!(kept["content_kept_for"].as_str().is_some_and(|why| why.contains("1 run is worked on")), "{kept}");
    owner.kill();
}

#[test]
fn the_doctor_says_what_is_broken_and_what_to_do() {
    let lab = passing();
    lab.set_own_secret("token", "hush-hush");
    let fine = lab.run(&["doctor"]).expect(0).stdout;
    for what in
        ["memory", "disk of data", "permissions", "secrets", "clock", "sandbox", "compiler", "control groups", "store"]
    {
        assert!(fine.lines().any(|line| line.starts_with(what)), "no {what}: {fine}");
    }
    let secret = lab.home().join("secrets/token");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).expect("ours");
    let broken = lab.run(&["doctor"]).expect(1).stdout;
    assert!(broken.contains("BROKEN: others can read") && broken.contains("chmod 600"), "{broken}");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).expect("ours");
    resources(&lab, "[program]\nmax_memory = 1\n");
    let broken = lab.run(&["doctor"]).expect(1).stdout;
    assert!(broken.contains("BROKEN") && broken.contains("resources.toml"), "{broken}");
}

/// Root's programs reach their work by its path there, which the directory of a test does not let them.
#[test]
fn the_doctor_says_which_wall_is_missing_and_what_root_s_programs_cannot_pass() {
    let lab = passing();
    let is_root = rustix::process::geteuid().is_root();
    let sandbox = |code| {
        let said = lab.run_through(&common::without_namespaces(), &["doctor"]).expect(code).stdout;
        said.lines().find(|line| line.starts_with("sandbox ")).expect("it tells").to_owned()
    };
    let told = sandbox(i32::from(is_root));
    assert!(told.contains("`full` is refused: cannot ") && told.contains("user.max_user_namespaces=10000"), "{told}");
    // What there is needs no remedy.
    assert!(!told.contains("level `landlock`") || !told.contains("lsm=landlock"), "{told}");
    assert_eq!(told.contains("longhaul runs as root, and programs as user 65533"), is_root, "{told}");
    let closed = format!("may not pass `{}`", lab.path("").canonicalize().expect("there").display());
    assert_eq!(told.contains("BROKEN") && told.contains(&closed), is_root, "{told}");
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o711)).expect("ours");
    let told = sandbox(0);
    assert!(told.contains("(less)") && !told.contains("may not pass"), "{told}");
}

/// What works within its limits, and what needs more than a check has.
#[test]
fn the_doctor_tries_a_tool_chain_within_the_limits_of_a_check() {
    if !Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no node");
        return;
    }
    let lab = passing();
    let project = lab.project();
    let node = |code| {
        let said = lab.run(&["--project", project.to_str().expect("text"), "doctor"]).expect(code).stdout;
        said.lines().find(|line| line.starts_with("node ")).expect("it tells").to_owned()
    };
    let write = |name: &str, text: &str| {
        let path = project.join(name);
        fs::create_dir_all(path.parent().expect("below the project")).expect("ours");
        fs::write(path, text).expect("ours");
    };
    write("package.json", r#"{"dependencies": {"hungry": "1"}}"#);
    assert!(node(0).contains("it works in the sandbox"));
    write("node_modules/hungry/package.json", r#"{"name": "hungry", "type": "module", "exports": "./index.js"}"#);
    write("node_modules/hungry/index.js", "export const held = new ArrayBuffer(3 * 2 ** 30);\n");
    let told = node(1);
    assert!(told.contains("BROKEN: it does not work in the sandbox: RangeError"), "{told}");
}

#[test]
fn the_doctor_tries_the_python_of_the_project_s_own_environment() {
    let lab = passing();
    let project = lab.project();
    let venv = project.join(".venv");
    let made = Command::new("/usr/bin/python3").args(["-m", "venv", "--without-pip"]).arg(&venv).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: this Python makes no environments");
        return;
    }
    fs::write(project.join("requirements.txt"), "").expect("ours");
    let said = lab.run(&["--project", project.to_str().expect("text"), "doctor"]).expect(0).stdout;
    let told = said.lines().find(|line| line.starts_with("python ")).expect("it tells");
    assert!(told.contains(".venv/bin/python` works in the sandbox"), "{told}");
}

#[test]
fn the_doctor_finds_content_that_is_not_what_was_stored() {
    let lab = passing();
    lab.run(&["run"]).expect(0);
    let state = lab.home().join("state.redb");
    let mut bytes = fs::read(&state).expect("there");
    // Compressed content begins so, wherever it lies; some of it is in pages that were left since.
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let found = bytes.windows(4).enumerate().filter(|(_, window)| *window == magic);
    let found: Vec<usize> = found.map(|(at, _)| at).collect();
    assert!(!found.is_empty());
    for at in found {
        bytes[at + 12..at + 20].iter_mut().for_each(|byte| *byte ^= 0xff);
    }
    fs::write(&state, bytes).expect("ours");
    let broken = lab.run(&["doctor", "--store"]).expect(1).stdout;
    assert!(broken.contains("BROKEN") && broken.contains("damaged"), "{broken}");
}

#[test]
fn the_log_goes_into_a_file_as_json_when_that_is_asked_for() {
    let lab = passing();
    let log = lab.path("log/longhaul.log");
    fs::create_dir(lab.path("log")).expect("ours");
    let log_name = log.to_str().expect("text");
    let environment = [("LONGHAUL_LOG", "debug"), ("LONGHAUL_LOG_FORMAT", "json"), ("LONGHAUL_LOG_FILE", log_name)];
    lab.start_with(&["run"], &environment).wait().expect(0);
    let text = fs::read_to_string(&log).expect("made");
    assert!(!text.is_empty());
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(line["timestamp"].is_string() && line["level"].is_string(), "{line}");
    }
    let wrong = lab.start_with(&["runs"], &[("LONGHAUL_LOG_FORMAT", "xml")]).wait();
    common::refused(&wrong, &["LONGHAUL_LOG_FORMAT", "`json`"]);
}

#[test]
fn systemd_takes_the_unit() {
    let unit = fs::read_to_string(repository().join("packaging/longhaul.service")).expect("there");
    // The program is not installed where tests run.
    let unit = unit.replace("/usr/local/bin/longhaul serve", "/bin/true");
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("longhaul.service");
    fs::write(&path, &unit).expect("ours");
    let Ok(output) = Command::new("systemd-analyze").arg("verify").arg(&path).output() else {
        eprintln!("skipped: there is no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("longhaul.service"), "{said}");
    assert!(unit.lines().any(|line| line.starts_with("Delegate=")), "children have groups of their own");
}

#[test]
fn the_container_file_names_what_is_there() {
    const KNOWN: [&str; 13] = [
        "FROM",
        "WORKDIR",
        "RUN",
        "COPY",
        "USER",
        "ENV",
        "VOLUME",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
        "ARG",
    ];
    let text = fs::read_to_string(repository().join("packaging/Containerfile")).expect("there");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let lines = lines.replace("\\\n", " ");
    let instructions: Vec<(&str, &str)> =
        lines.lines().filter_map(|line| line.split_once(' ')).map(|(word, rest)| (word, rest.trim())).collect();
    for (word, rest) in &instructions {
        assert!(KNOWN.contains(word), "{word} {rest}");
        if *word == "FROM" {
            let image = rest.split(' ').next().unwrap_or_default();
            assert!(image.contains(':') && !image.ends_with(":latest"), "{image}");
        }
    }
    let of = |wanted: &str| {
        instructions.iter().filter(|(word, _)| *word == wanted).map(|(_, rest)| *rest).collect::<Vec<_>>()
    };
    assert!(of("USER") == ["longhaul"], "it does not run as root");
    // Forms that no shell reads get signals themselves.
    for rest in of("CMD").into_iter().chain(of("ENTRYPOINT")) {
        assert!(serde_json::from_str::<Vec<String>>(rest).is_ok(), "{rest}");
    }
    let minimum = fs::read_to_string(repository().join("Cargo.toml")).expect("there");
    let minimum: toml::Table = minimum.parse().expect("cargo reads it");
    let version = minimum["workspace"]["package"]["rust-version"].as_str().expect("text").to_owned();
    assert!(of("FROM")[0].contains(&format!("rust:{version}")), "the compiler that the workspace asks for");
}
