//! Runs that are rehearsed on other bytes of a plugin and moved to them, seen from the outside.

use crate::common::gated::{answer, open};
use crate::common::lab::{Lab, Ran};
use crate::common::{DOER_CONFIG, refused, repository};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// Two features, of which each asks before it tells the server: the run waits in the middle of its first invocation.
fn waiting(second_check: &str) -> Lab {
    let heard = "when_heard = \"allow\"";
    let altered = "[checks]\naltered_four = { argv = [\"grep\", \"-q\", \"altered four-\", \"four.txt\"] }";
    let config = DOER_CONFIG.replace(heard, &format!("{heard}, functions = {{ post = \"ask\" }}"));
    let goal = format!(
        "# Two\n\n## Feature: the first\n- id: one\n- check: wrote_one\n\nDo it.\n\n\
         ## Feature: the fourth\n- id: four\n- depends on: one\n- check: {second_check}\n\nDo it, too.\n"
    );
    let lab = Lab::new(&config.replace("[checks]", altered), &goal);
    lab.run(&["run"]).expect(5);
    lab
}

fn guest(name: &str) -> Vec<u8> {
    fs::read(repository().join(format!("target/plugins/tests/{name}.wasm"))).expect("the guests are built")
}

/// The same component in other bytes: with one more custom section.
fn marked(mut component: Vec<u8>) -> Vec<u8> {
    let section = b"\x04markother bytes";
    component.extend([0, u8::try_from(section.len()).expect("short")]);
    component.extend(section);
    component
}

/// Writes these bytes as the plugin `doer` of a directory, and returns its file.
fn doer_in(lab: &Lab, directory: &str, bytes: &[u8]) -> PathBuf {
    let directory = lab.path(directory);
    fs::create_dir_all(&directory).expect("ours");
    let file = directory.join("doer.wasm");
    fs::write(&file, bytes).expect("ours");
    file
}

/// Runs the program where the plugins of a directory come first.
fn with_plugins(lab: &Lab, directory: &str, args: &[&str]) -> Ran {
    let built = repository().join("target/plugins");
    let searched = std::env::join_paths([lab.path(directory), built.clone(), built.join("tests")]).expect("no colon");
    lab.start_with(args, &[("LONGHAUL_PLUGINS", searched.to_str().expect("text"))]).wait()
}

/// Allows each call that asks, until the run has ended.
fn to_the_end(lab: &Lab) {
    loop {
        for one in open(lab) {
            answer(lab, one["id"].as_str().expect("an id"), "y").expect(0);
        }
        let ran = lab.run(&["resume"]);
        if ran.code() != Some(5) {
            ran.expect(0);
            return;
        }
    }
}

fn rehearsal(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.said()))
}

fn moves(lab: &Lab) -> Vec<Value> {
    let said = lab.run(&["--json", "attach"]).stdout;
    let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|line| line["type"] == "moved").map(|line| line["payload"].clone()).collect()
}

#[test]
fn a_run_that_reaches_its_end_on_other_bytes_is_moved_to_them_and_goes_on_amid_its_work() {
    let lab = waiting("wrote_four");
    let run = lab.runs().pop().expect("a run");
    let same = doer_in(&lab, "same", &marked(guest("doer")));
    let same = same.to_str().expect("text");
    let posted = lab.fake.posts();

    // On the present program and its own bytes, and on others that do the same.
    let own = rehearsal(&lab.run(&["--json", "rehearse"]).expect(0));
    assert_eq!(own["runs"][0]["verdict"], "reaches_end", "{own:#}");
    let ran = lab.run(&["rehearse", "--plugin", same, "--live"]).expect(0);
    assert!(ran.stdout.starts_with(&format!("run {run}: reaches its end, ")), "{}", ran.said());
    assert!(ran.stdout.contains(" a second, on doer 0.1.0 (sha256:"), "{}", ran.said());
    assert_eq!(lab.fake.posts(), posted, "nothing was executed");

    // Other work is told where it begins, with both requests.
    let altered = repository().join("target/plugins/tests/doer2.wasm");
    let altered = altered.to_str().expect("text");
    let told = rehearsal(&lab.run(&["--json", "rehearse", &run, "--plugin", altered, "--replaces", "doer"]).expect(1));
    let found = &told["runs"][0]["difference"];
    assert_eq!(
        (&told["runs"][0]["verdict"], &found["invocation"]),
        (&"differs".into(), &format!("{run}/f-one/1/generate").into()),
        "{told:#}"
    );
    let lines: Vec<&str> = found["lines"].as_array().expect("lines").iter().filter_map(Value::as_str).collect();
    let changed = |sign: char, word: &str| lines.iter().any(|line| line.starts_with(sign) && line.contains(word));
    assert!(changed('-', "written one-1") && changed('+', "altered one-1"), "{lines:#?}");

    // What cannot be rehearsed or moved is said in a line.
    let tool = lab.run(&["rehearse", "--plugin", "poster"]).expect(1);
    assert!(tool.stdout.contains("cannot be told: `poster` has the role tool"), "{}", tool.said());
    refused(&lab.run(&["rehearse", "--plugin", "./none.wasm"]), &["cannot read"]);
    fs::write(lab.path("nonsense.wasm"), "nonsense").expect("ours");
    refused(&lab.run(&["rehearse", "--plugin", "../nonsense.wasm"]), &["`nonsense` is not a component"]);
    refused(&lab.run(&["rehearse", "--plugin", "lenient"]), &["has no plugin `lenient`; it has "]);
    refused(&lab.run(&["rehearse", "r-ffffffffffff"]), &["r-ffffffffffff"]);
    refused(&lab.run(&["move", "--plugin", "doer"]), &["has these bytes of `doer` already"]);

    let moved = with_plugins(&lab, "same", &["move", "--plugin", "doer"]).expect(0);
    assert!(moved.stdout.contains(&format!("{run}/f-one/1/generate goes on with it after entry ")), "{}", moved.said());
    let event = moves(&lab).pop().expect("an event");
    assert_eq!(
        (event["plugin"].as_str(), event["unmoved"].as_array().map(Vec::len)),
        (Some("doer"), Some(0)),
        "{event}"
    );
    to_the_end(&lab);
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
    lab.run(&["gc"]).expect(0);
    lab.run(&["replay"]).expect(0);
    refused(&with_plugins(&lab, "same", &["move", "--plugin", "doer"]), &["has ended, so it is not moved"]);
    lab.run(&["rehearse", "--plugin", same]).expect(0);
}

#[test]
fn a_run_that_differs_is_moved_from_its_next_work_on_and_what_has_begun_ends_on_its_own_bytes() {
    let lab = waiting("altered_four");
    doer_in(&lab, "altered", &guest("doer2"));
    let unasked = with_plugins(&lab, "altered", &["move", "--plugin", "doer"]).expect(1);
    assert!(
        unasked.said().contains("nothing was moved") && unasked.said().contains("differs at entry "),
        "{}",
        unasked.said()
    );
    assert_eq!(moves(&lab).len(), 0);
    let moved = with_plugins(&lab, "altered", &["move", "--plugin", "doer", "--yes"]).expect(0);
    assert!(moved.stdout.contains("f-one/1/generate ends on the bytes that it began with"), "{}", moved.said());
    to_the_end(&lab);
    // The first feature passes as the old bytes wrote it, the second as the new ones did.
    assert_eq!(lab.newest().expect("a run")["status"], "completed");
    lab.run(&["gc"]).expect(0);
    lab.run(&["replay"]).expect(0);
}
