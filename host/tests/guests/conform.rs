//! The rules of conformance: every shipped plugin and every example of an SDK passes all of them, and each can
//! fail.

use crate::common::guests::{guest, guest_of_text};
use crate::common::{of_this_user, repository, test_cache};
use longhaul_conform::{Bench, ConformReport, ConformSubject, RuleVerdict, conform, conform_backend, rules};
use longhaul_core::memory::{Embedded, MemoryBackend};
use longhaul_core::{Clock, Digest, Limits};
use longhaul_engine::CompileLimits;
use longhaul_store::{RedbStore, StoreOptions};
use longhaul_testkit::{HandClock, Kit};
use std::path::Path;
use std::sync::Arc;

fn kit() -> Kit {
    let cache = of_this_user("compiled");
    Kit::with_program(env!("CARGO_BIN_EXE_longhaul").into(), cache).unwrap_or_else(|error| panic!("{error}"))
}

async fn report(subject: ConformSubject) -> ConformReport {
    conform(&kit(), subject).await
}

/// The expected finding about a component: the rule, the word, and a part of the reason.
#[track_caller]
fn check(report: &ConformReport, expected: &[(&str, &str, &str)]) {
    for (rule, word, why) in expected {
        let found = report.of(rule).unwrap_or_else(|| panic!("there is no rule `{rule}`:\n{report}"));
        assert!(found.word() == *word && found.why().contains(why), "{rule} should be {word} {why}:\n{report}");
    }
}

fn of_text(text: &str) -> ConformSubject {
    ConformSubject::new("guest", guest_of_text(text))
}

/// Holds the rules against every component of a folder below `target/plugins`, as an author does, with the cache of an
/// author or another one.
#[track_caller]
fn all_pass(folder: &str, at_least: usize, cache: Option<&Path>) {
    let folder = repository().join("target/plugins").join(folder);
    let built = folder.read_dir().unwrap_or_else(|error| panic!("run `cargo xtask plugins --tests` first: {error}"));
    let paths = built.map(|entry| entry.expect("readable").path());
    let components: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "wasm")).collect();
    assert!(components.len() >= at_least, "{components:?}; run `cargo xtask plugins --tests` first");
    for path in components {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"));
        command.envs(cache.map(|cache| ("LONGHAUL_CACHE", cache)));
        let output = command.arg("conform").arg(&path).output().expect("it runs");
        let said = [output.stdout, output.stderr].concat();
        assert!(output.status.success(), "{}:\n{}", path.display(), String::from_utf8_lossy(&said));
    }
}

#[test]
fn an_agent_is_cut_at_each_entry_of_its_journal_where_that_is_asked_for() {
    let path = repository().join("target/plugins/react.wasm");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"));
    command.env("LONGHAUL_CACHE", test_cache()).arg("conform").arg("--crash").arg(&path);
    let output = command.output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}");
    let found = said.lines().find(|line| line.contains(" crash ")).unwrap_or_else(|| panic!("no `crash` in\n{said}"));
    assert!(found.starts_with("PASS crash") && found.contains("no finished effect again"), "{found}");
}

#[test]
fn every_shipped_plugin_passes() {
    // The interpreters are compiled there for other tests, too.
    all_pass("", 7, Some(&test_cache()));
}

#[test]
fn every_example_in_rust_passes() {
    all_pass("sdk/rust", 5, None);
}

#[test]
fn every_example_in_python_passes() {
    all_pass("sdk/python", 5, None);
}

#[test]
fn every_example_in_javascript_passes() {
    all_pass("sdk/js", 6, None);
}

#[test]
fn every_example_in_c_passes() {
    all_pass("sdk/c", 5, None);
}

#[tokio::test]
async fn what_is_no_plugin_is_said_without_running_it() {
    let report = report(ConformSubject::new("text", b"hello".to_vec())).await;
    check(
        &report,
        &[("component", "FAIL", "does not start as WebAssembly does"), ("world", "SKIP", ""), ("imports", "SKIP", "")],
    );
    assert_eq!((report.role, report.passes()), (None, false));
}

#[tokio::test]
async fn a_component_beyond_the_cap_on_bytes_is_not_looked_into() {
    // Zeros behind a component that is one: what they are is not asked any more.
    let max = usize::try_from(CompileLimits::default().bytes_max).expect("fits");
    let mut bytes = guest("healthy");
    bytes.resize(max + 1, 0);
    let report = report(ConformSubject::new("large", bytes)).await;
    check(
        &report,
        &[("component", "FAIL", "bytes_max"), ("world", "SKIP", ""), ("imports", "SKIP", "no plugin that could be")],
    );
    assert!(report.of("loads").is_none() && !report.passes(), "{report}");
}

#[tokio::test]
async fn an_agent_with_the_imports_of_a_tool_does_not_load() {
    let report = report(ConformSubject::new("greedy", guest("calls-keyvalue"))).await;
    check(
        &report,
        &[
            ("component", "PASS", ""),
            ("world", "PASS", "role agent"),
            ("imports", "FAIL", "longhaul:plugin/keyvalue@0.1.0"),
            ("loads", "FAIL", "keyvalue"),
        ],
    );
}

/// A tool that describes one function `f` with these parameters and this effect, by its number.
fn describing(parameters: &str, effect: u32, imports: &str, body: &str) -> ConformSubject {
    let length = parameters.len();
    let parameters = parameters.replace('\\', "\\5c").replace('"', "\\22");
    of_text(&format!(
        r#";; tool
{imports}
(data (i32.const 2048) "f")
(data (i32.const 2052) "{parameters}")
(func $describe (result i32)
  (i32.store (i32.const 600) (i32.const 2048)) (i32.store (i32.const 604) (i32.const 1))
  (i32.store (i32.const 608) (i32.const 2048)) (i32.store (i32.const 612) (i32.const 1))
  (i32.store (i32.const 616) (i32.const 2052)) (i32.store (i32.const 620) (i32.const {length}))
  (i32.store (i32.const 624) (i32.const {effect}))
  (i32.store (i32.const 512) (i32.const 2048)) (i32.store (i32.const 516) (i32.const 1))
  (i32.store (i32.const 520) (i32.const 2048)) (i32.store (i32.const 524) (i32.const 1))
  (i32.store (i32.const 528) (i32.const 600)) (i32.store (i32.const 532) (i32.const 1))
  (i32.const 512))
(func $body (param i32 i32 i32 i32) (result i32 i32) {body})"#
    ))
}

const PARAMETERS: &str = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;

#[tokio::test]
async fn a_tool_that_crashes_on_everything_survives_nothing() {
    let report = report(describing(PARAMETERS, 0, "", "unreachable")).await;
    check(
        &report,
        &[
            ("describes", "PASS", "1 function: f"),
            ("unknown-function", "FAIL", "trapped"),
            ("wrong-input", "FAIL", "function `f` did not survive arguments that are no JSON"),
            ("empty-input", "FAIL", "trapped"),
            ("huge-input", "FAIL", "trapped"),
            ("deep-input", "FAIL", "trapped"),
            ("odd-input", "FAIL", "trapped"),
            ("within-limits", "FAIL", "did not survive a good call"),
        ],
    );
}

#[tokio::test]
async fn a_tool_that_answers_anything_with_no_json_is_found_out() {
    // The output is the name of the function, `f`, which is not JSON.
    let report = report(describing(PARAMETERS, 3, "", "(i32.const 2048) (i32.const 1)")).await;
    check(
        &report,
        &[
            ("unknown-function", "FAIL", "a function that it does not have"),
            ("wrong-input", "FAIL", "took arguments that are no JSON"),
            ("answers-json", "FAIL", "call: function `f`: `output` must be JSON"),
            ("effects", "SKIP", "no function claims less than `acts`"),
            ("read-only", "SKIP", ""),
            ("memory-keeps", "SKIP", "not for the role tool"),
            ("cancel", "SKIP", "was over within"),
        ],
    );
}

#[tokio::test]
async fn a_description_that_no_model_could_follow_is_refused() {
    let report =
        report(describing(r#"{"type":"object","properties":{"a":{"type":"text"}}}"#, 3, "", "unreachable")).await;
    check(&report, &[("describes", "FAIL", "#/properties/a/type is not a type")]);
}

#[tokio::test]
async fn a_claim_of_an_effect_is_held_against_what_the_tool_does() {
    let body = "(call $set (i32.const 2048) (i32.const 1) (i32.const 2048) (i32.const 1) (i32.const 2304)) (i32.const 2048) (i32.const 1)";
    let imports = r#"(import "longhaul:plugin/keyvalue@0.1.0" "set" (func $set (param i32 i32 i32 i32 i32)))"#;
    let writes = report(describing(PARAMETERS, 0, imports, body)).await;
    check(&writes, &[("read-only", "FAIL", "wrote to its keys")]);
    let cannot = report(describing(PARAMETERS, 2, "", "(call $say (i64.const 1))")).await;
    check(&cannot, &[("effects", "FAIL", "`prepare` was stopped")]);
}

#[tokio::test]
async fn a_call_beyond_the_stated_limits_is_said_with_the_limit() {
    let endless = "(loop $again (br $again)) unreachable";
    let subject = describing(PARAMETERS, 0, "", endless);
    let subject = ConformSubject { limits: Limits { fuel_max: 1_000_000, ..Limits::default() }, ..subject };
    let report = report(subject).await;
    check(&report, &[("within-limits", "FAIL", "fuel_max")]);
}

#[tokio::test]
async fn an_agent_that_a_clock_has_to_end_is_not_deterministic() {
    let endless =
        ";; agent\n(func $body (param i32 i32 i32 i32) (result i32 i32) (loop $again (br $again)) unreachable)";
    let within = |limits| ConformSubject { limits, ..of_text(endless) };
    let unlimited = Limits { fuel_max: u64::MAX, ..Limits::default() };
    for limits in [Limits { cpu_ms_max: 50, ..unlimited.clone() }, Limits { wall_ms_max: 50, ..unlimited }] {
        let clock = if limits.cpu_ms_max == 50 { "cpu_ms_max" } else { "wall_ms_max" };
        let report = report(within(limits)).await;
        check(&report, &[("deterministic", "FAIL", clock), ("within-limits", "FAIL", clock)]);
    }
    let report = report(within(Limits { fuel_max: 1_000_000, ..Limits::default() })).await;
    check(&report, &[("deterministic", "PASS", "twice the same"), ("within-limits", "FAIL", "fuel_max")]);
}

#[tokio::test]
async fn a_tool_that_has_the_host_work_and_never_yields_is_cancelled_all_the_same() {
    // Of a large input it makes nothing but calls for a megabyte of randomness, for 1.2 s: so few instructions of its
    // own that it never yields. What the host hands over lies where the arguments were.
    let imports = r#"(import "wasi:random/random@0.2.12" "get-random-bytes" (func $random (param i64 i32)))
(import "wasi:clocks/monotonic-clock@0.2.12" "now" (func $now (result i64)))
(memory (export "memory") 64)
(func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 65536))"#;
    let body = "(local $end i64)
  (local.set $end (i64.add (call $now) (i64.const 1200000000)))
  (if (i32.gt_u (local.get 3) (i32.const 500000)) (then
    (loop $again
      (call $random (i64.const 1048576) (i32.const 2304))
      (br_if $again (i64.lt_u (call $now) (local.get $end))))))
  (i32.const 2048) (i32.const 1)";
    let report = report(describing(PARAMETERS, 3, imports, body)).await;
    check(&report, &[("cancel", "PASS", "after it was cancelled"), ("huge-input", "PASS", "")]);
}

#[tokio::test]
async fn an_agent_that_is_random_by_its_own_word_follows_the_seed() {
    let text = r#";; agent
(import "wasi:random/random@0.2.12" "get-random-u64" (func $random (result i64)))
(func $body (param i32 i32 i32 i32) (result i32 i32) BODY)"#;
    let answers = |body: &str| ConformSubject { random: true, ..of_text(&text.replace("BODY", body)) };
    let drawn = report(answers("(call $say (i64.shr_u (call $random) (i64.const 1)))")).await;
    check(&drawn, &[("fresh-randomness", "PASS", "followed the seed"), ("deterministic", "PASS", "twice the same")]);
    let frozen = report(answers("(drop (call $random)) (call $say (i64.const 4))")).await;
    check(&frozen, &[("fresh-randomness", "FAIL", "drawn when it was built")]);
    let silent = report(ConformSubject { random: false, ..answers("(call $say (i64.const 4))") }).await;
    check(&silent, &[("fresh-randomness", "SKIP", "")]);
}

#[tokio::test]
async fn a_memory_backend_that_forgets_is_found_out() {
    let report = report(of_text(";; memory\n(func $got (result i32) (i32.const 512))")).await;
    check(
        &report,
        &[
            ("wrong-input", "FAIL", "took a value that is no JSON"),
            ("memory-refuses", "FAIL", "took a value that is no JSON"),
            ("memory-keeps", "FAIL", "got back was null"),
            ("memory-lists", "FAIL", "listed page by page"),
            ("memory-searches", "FAIL", "does not find a word"),
            ("memory-expires", "FAIL", "gone before it expires"),
            ("memory-isolates", "FAIL", "holds null"),
            ("memory-odd-keys", "FAIL", "got back was null"),
        ],
    );
}

#[tokio::test]
async fn a_memory_backend_that_gives_one_entry_for_everything_is_found_out() {
    // `some` of an entry with the key `k` and the value 1.
    let text = r#";; memory
(data (i32.const 2048) "k1")
(func $got (result i32)
  (i32.store (i32.const 1032) (i32.const 1))
  (i32.store (i32.const 1040) (i32.const 2048)) (i32.store (i32.const 1044) (i32.const 1))
  (i32.store (i32.const 1048) (i32.const 2049)) (i32.store (i32.const 1052) (i32.const 1))
  (i32.const 1024))"#;
    let report = report(of_text(text)).await;
    check(
        &report,
        &[
            ("memory-keeps", "FAIL", "got back was"),
            ("memory-expires", "FAIL", "still given by get"),
            ("memory-isolates", "FAIL", "holds 1"),
            ("memory-odd-keys", "FAIL", "was put, and got back was"),
        ],
    );
}

/// The backend of the host itself, in a store that is opened for each call.
struct InStore {
    directory: tempfile::TempDir,
    clock: Arc<HandClock>,
    /// True when it forgets every entry.
    forgets: bool,
}

#[async_trait::async_trait]
impl Bench for InStore {
    async fn open(&self, room: &str) -> Result<Box<dyn MemoryBackend>, String> {
        let room =
            if self.forgets { Digest::of(&self.clock.now_ms().to_le_bytes()).to_string() } else { room.to_owned() };
        self.clock.advance_ms(u64::from(self.forgets));
        let opened = RedbStore::open(&self.directory.path().join(room), StoreOptions::default());
        let store = Arc::new(opened.map_err(|error| error.to_string())?);
        Ok(Box::new(Embedded::new(store, Arc::clone(&self.clock) as Arc<dyn Clock>)))
    }

    fn clock(&self) -> &HandClock {
        &self.clock
    }
}

#[tokio::test]
async fn the_memory_of_the_host_itself_passes_and_one_that_forgets_does_not() {
    let bench = |forgets| InStore {
        directory: tempfile::tempdir().expect("a folder"),
        clock: Arc::new(HandClock::at(HandClock::START_MS)),
        forgets,
    };
    let report = conform_backend("embedded", &bench(false)).await;
    assert!(report.passes() && report.findings.len() >= 7, "{report}");
    let report = conform_backend("forgetful", &bench(true)).await;
    check(&report, &[("memory-keeps", "FAIL", "got back was null"), ("memory-lists", "FAIL", "")]);
}

#[test]
fn every_rule_has_an_id_of_its_own() {
    let mut ids: Vec<&str> = rules().iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), rules().len());
    assert!(rules().iter().all(|rule| !rule.says.is_empty()));
    assert_eq!(RuleVerdict::Pass(String::new()).word(), "PASS");
}
