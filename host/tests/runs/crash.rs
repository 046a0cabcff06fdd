//! A run that is killed, anywhere and as often as one likes, ends as the same run that was not.
//!
//! One run, not killed, lists the points at which a crash test can end the process. For each name of
//! them the first and the last occurrence are tried, each in a run of its own, and the middle one later in the run of
//! the first; `LONGHAUL_CRASH_ALL=1` tries all, each in a run of its own, `LONGHAUL_CRASH_AT=NAME:N` the one that it
//! names; `LONGHAUL_KILLS=200` kills at as many random moments (default 10), `LONGHAUL_SEED` repeats those of an earlier
//! test. A question about an unknown effect is answered as a person would: by looking at the server.

use crate::common::fake::Kill;
use crate::common::lab::{Lab, Ran};
use crate::common::outcome::{Outcome, leftovers};
use crate::common::{DOER_CONFIG, Random, THREE_FEATURES, answer_if_asked, number, occurrences};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// Starts after which a run that still goes on is taken to go on for ever.
const STARTS_MAX: usize = 40;

/// Sub-agents that are at work at once.
const HELPERS_AT_ONCE: usize = 2;

/// Labs that are at work at once.
const LABS_AT_ONCE: usize = 3;

#[test]
fn a_run_that_is_killed_at_any_point_ends_as_if_it_was_not() {
    let (reference, points) = unkilled(&lab());
    let chosen = choose(&points);
    let tally = Mutex::new(Tally::default());
    at_once(&chosen, |Place { point, later }| {
        let lab = lab();
        let killed = start(&lab, &[("LONGHAUL_CRASH_AT", point)]);
        let name = name_of(point);
        let mut kills = u32::from(killed.was_killed());
        tally.lock().unwrap().count(point, killed.was_killed());
        // The recovery from a kill is a place to be killed at as well.
        kills +=
            u32::from(resume(&lab, &[("LONGHAUL_CRASH_AT", &format!("{name}:1"))]).is_some_and(|ran| ran.was_killed()));
        kills += kill_later(&lab, later.as_deref(), &tally);
        check(&lab, point, &reference, kills);
    });
    tally.into_inner().unwrap().report(&points, &chosen);
}

#[test]
fn a_kill_around_a_compiler_leaves_nothing_half_compiled() {
    // Warms the shared cache, whose interpreter the cold ones take over.
    let (reference, _) = unkilled(&lab());
    let (_, points) = unkilled(&lab().with_cold_cache());
    let points: Vec<String> = points.into_iter().filter(|point| point.starts_with("compile.")).collect();
    let chosen = choose(&points);
    let tally = Mutex::new(Tally::default());
    at_once(&chosen, |Place { point, later }| {
        let lab = lab().with_cold_cache();
        let killed = start(&lab, &[("LONGHAUL_CRASH_AT", point)]);
        tally.lock().unwrap().count(point, killed.was_killed());
        let kills = 1 + kill_later(&lab, later.as_deref(), &tally);
        check(&lab, point, &reference, kills);
        forgets_what_is_half_compiled(&lab);
    });
    tally.into_inner().unwrap().report(&points, &chosen);
}

/// The remains of a killed compiler are deleted by a compilation a good while later.
fn forgets_what_is_half_compiled(lab: &Lab) {
    let files = || -> Vec<PathBuf> {
        let entries = std::fs::read_dir(lab.compiled()).expect("ours").filter_map(Result::ok);
        entries.map(|entry| entry.path()).collect()
    };
    let long_ago = SystemTime::now() - Duration::from_secs(86_400);
    for file in files().iter().filter(|file| file.to_string_lossy().contains(".compiling-")) {
        File::options().write(true).open(file).and_then(|file| file.set_modified(long_ago)).expect("ours");
    }
    let is_compiled = |file: &PathBuf| file.extension().is_some_and(|end| end == "cwasm");
    let mut compiled: Vec<PathBuf> = files().into_iter().filter(is_compiled).collect();
    compiled.sort_by_key(|file| file.metadata().map_or(0, |found| found.len()));
    // All but the interpreter, which takes seconds: which of the others a replay calls is not ours to know.
    compiled.pop();
    for file in compiled {
        std::fs::remove_file(file).expect("ours");
    }
    lab.run(&["replay"]).expect(0);
    let left: Vec<PathBuf> =
        files().into_iter().filter(|file| file.to_string_lossy().contains(".compiling-")).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn an_effect_that_is_in_flight_at_a_kill_happens_once() {
    let (reference, _) = unkilled(&lab());
    let reads = [("post", 6), ("put", 3), ("look", 2), ("model", 7)].map(|(kind, number)| (kind, number, true));
    let firsts = ["post", "put", "look", "model"].map(|kind| (kind, 1, true));
    let lost = [("post", 1, false), ("post", 8, false), ("put", 2, false)];
    let cases: Vec<_> = reads.into_iter().chain(firsts).chain(lost).collect();
    at_once(&cases, |(kind, number, happens)| {
        let lab = lab();
        let started = lab.start(&["run"]);
        let (kind, number, happens) = (*kind, *number, *happens);
        lab.fake.kill_at(Kill { pid: started.pid(), kind, number, happens });
        let killed = started.wait();
        let what = format!("{kind} {number}, which {}", if happens { "happened" } else { "got lost" });
        assert!(killed.was_killed(), "{what}: {}", killed.said());
        check(&lab, &what, &reference, 1);
    });
    println!("effects in flight: {} kills survived", cases.len());
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_as_if_it_was_not() {
    let wanted: u32 = number("LONGHAUL_KILLS").unwrap_or(10);
    let seed: u64 = number("LONGHAUL_SEED").unwrap_or_else(|| {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        u64::from(now.subsec_nanos()) << 20 | u64::from(std::process::id())
    });
    println!("LONGHAUL_SEED={seed} LONGHAUL_KILLS={wanted}");
    let (reference, _) = unkilled(&lab());
    let since = Instant::now();
    start(&lab(), &[]).expect(3);
    let takes = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
    let survived = AtomicU32::new(0);
    let runs: Vec<u64> = (0..u64::from(wanted)).collect();
    at_once(&runs, |run| {
        if survived.load(Ordering::Relaxed) >= wanted {
            return;
        }
        let mut random = Random::new(seed, *run);
        let lab = lab();
        let mut kills = 0;
        // A few in one run, since each has less left to do than the one before.
        for _ in 0..=random.below(5) {
            let newest = lab.newest();
            if newest.as_ref().is_some_and(is_over) {
                break;
            }
            let mut started = lab.start(if newest.is_none() { &["run"] } else { &["resume"] });
            std::thread::sleep(Duration::from_micros(random.below(takes)));
            started.kill();
            kills += u32::from(started.wait().was_killed());
            lab.fake.settle();
            answer_if_asked(&lab);
        }
        check(&lab, &format!("LONGHAUL_SEED={seed}, run {run}"), &reference, kills);
        survived.fetch_add(kills, Ordering::Relaxed);
    });
    println!("random kills survived: {}", survived.into_inner());
}

#[test]
fn a_half_written_object_goes_when_it_is_old() {
    let lab = lab();
    let objects = lab.project().join(".git/objects");
    let (old, new) = (objects.join("tmp_object_git2_old"), objects.join("tmp_object_git2_new"));
    for (path, age) in [(&old, 3_600), (&new, 0)] {
        let file = File::create(path).expect("ours");
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).expect("ours");
    }
    start(&lab, &[]).expect(3);
    assert!(!old.exists());
    assert!(new.exists(), "somebody may be writing it");
}

#[test]
fn a_question_that_was_answered_takes_no_second_answer() {
    let lab = lab();
    let started = lab.start(&["run"]);
    lab.fake.kill_at(Kill { pid: started.pid(), kind: "post", number: 2, happens: true });
    started.wait();
    let asked = lab.run(&["resume"]).expect(5);
    assert!(asked.stdout.contains("--happened"), "{}", asked.said());
    let parked = lab.newest().expect("a run");
    assert!(parked["question"].as_str().is_some_and(|question| question.contains("poster.post")), "{parked}");
    // Going on without an answer asks again, and does nothing.
    let posts = lab.fake.posts().len();
    lab.run(&["resume"]).expect(5);
    assert_eq!(lab.fake.posts().len(), posts);
    answer_if_asked(&lab);
    lab.run(&["resume"]).expect(3);
    let over = lab.newest().expect("a run");
    assert_eq!(over["question"], Value::Null);
    let refused = lab.run(&["answer", "--did-not-happen"]);
    assert_eq!(refused.code(), Some(1), "{}", refused.said());
    assert!(refused.stderr.contains("asks about no effect"), "{}", refused.said());
    assert_eq!(lab.newest().expect("a run"), over);
}

fn lab() -> Lab {
    Lab::new(DOER_CONFIG, THREE_FEATURES)
}

/// The traces of a run without a kill, and the points that it passes, as `NAME:COUNT`.
fn unkilled(lab: &Lab) -> (Outcome, Vec<String>) {
    let log = lab.path("points");
    let ran = start(lab, &[("LONGHAUL_CRASH_LOG", log.to_str().expect("plain"))]);
    assert_eq!(ran.code(), Some(3), "the third feature never passes:\n{}", ran.said());
    let outcome = Outcome::of(lab);
    assert_eq!(outcome.commits.len(), 2, "{outcome:#?}");
    assert!(outcome.posts.values().chain(outcome.puts.values()).all(|count| *count == 1), "{outcome:#?}");
    assert_eq!(leftovers(lab), Vec::<String>::new());
    sub_agents_were_asked(&outcome);
    let points = std::fs::read_to_string(&log).expect("points were reached");
    (outcome, points.lines().map(str::to_owned).collect())
}

/// The second feature hands work on: to two beside each other, to one that asks as deep as it may, and to
/// one that it was not granted.
fn sub_agents_were_asked(outcome: &Outcome) {
    let all = format!("{:?}", outcome.invocations);
    for expected in ["helped with two-1-help-a", "helped with two-1-help-b", "delegation_depth_max", "agents = "] {
        assert!(all.contains(expected), "no `{expected}` in {all}");
    }
    let deepest = outcome.invocations.iter().map(|(name, _)| name.matches('#').count()).max();
    assert_eq!(deepest, Some(3), "{all}");
}

fn start(lab: &Lab, environment: &[(&str, &str)]) -> Ran {
    lab.start_with(&["run"], environment).wait()
}

/// Goes on with the run, if there is one and it is not over.
fn resume(lab: &Lab, environment: &[(&str, &str)]) -> Option<Ran> {
    lab.fake.settle();
    let newest = answer_if_asked(lab);
    if newest.as_ref().is_some_and(is_over) {
        return None;
    }
    let args = if newest.is_none() { ["run"] } else { ["resume"] };
    Some(lab.start_with(&args, environment).wait())
}

/// Goes on with a run that was killed, past the questions that it asks, until it is killed at a further place. Returns
/// the number of kills.
fn kill_later(lab: &Lab, point: Option<&str>, tally: &Mutex<Tally>) -> u32 {
    let Some(point) = point else { return 0 };
    let go_on = || resume(lab, &[("LONGHAUL_CRASH_AT", point)]);
    let ended = (0..STARTS_MAX).map(|_| go_on()).find(|ran| ran.as_ref().is_none_or(|ran| ran.code() != Some(5)));
    let was_killed = ended.flatten().is_some_and(|ran| ran.was_killed());
    tally.lock().unwrap().count(point, was_killed);
    u32::from(was_killed)
}

/// Brings the run to its end and compares what it leaves.
#[track_caller]
fn check(lab: &Lab, what: &str, reference: &Outcome, kills: u32) {
    for _ in 0..STARTS_MAX {
        let Some(ran) = resume(lab, &[]) else { break };
        assert!(matches!(ran.code(), Some(0 | 3 | 5)), "killed at {what}, then: {:?}\n{}", ran.status, ran.said());
    }
    assert!(lab.newest().as_ref().is_some_and(is_over), "killed at {what}: it does not end");
    let outcome = Outcome::of(lab);
    assert_eq!(differences(reference, &outcome), "", "killed at {what}");
    assert_eq!(leftovers(lab), Vec::<String>::new(), "killed at {what}");
    // Each key was told once, whatever the text.
    let keys: BTreeSet<String> = lab.fake.posts().into_iter().map(|told| told.key).collect();
    assert_eq!(keys.len(), lab.fake.posts().len(), "killed at {what}: {:?}", lab.fake.posts());
    // At most the model calls in flight are asked again.
    let asked = lab.fake.asked();
    let asked_once: BTreeSet<&String> = asked.iter().collect();
    let again_max = kills as usize * HELPERS_AT_ONCE;
    assert!(asked.len() <= asked_once.len() + again_max, "killed {kills} times at {what}: {asked:#?}");
    // After all this the components still do what their journals hold.
    let replayed = lab.run(&["replay"]);
    assert_eq!(replayed.code(), Some(0), "killed at {what}, replayed:\n{}", replayed.said());
}

fn is_over(status: &Value) -> bool {
    matches!(status["status"].as_str(), Some("completed" | "incomplete" | "failed" | "abandoned"))
}

/// Each line that only one of them has.
fn differences(reference: &Outcome, outcome: &Outcome) -> String {
    let (reference, outcome) = (format!("{reference:#?}"), format!("{outcome:#?}"));
    if reference == outcome {
        return String::new();
    }
    let (expected, found): (Vec<&str>, Vec<&str>) = (reference.lines().collect(), outcome.lines().collect());
    let missing = expected.iter().filter(|line| !found.contains(line)).map(|line| format!("- {line}\n"));
    let extra = found.iter().filter(|line| !expected.contains(line)).map(|line| format!("+ {line}\n"));
    let lines: String = missing.chain(extra).collect();
    if lines.is_empty() { "the order differs".into() } else { lines }
}

/// The point at which a run is killed first, and one at which it is killed on its way after that.
struct Place {
    point: String,
    later: Option<String>,
}

/// For each name its first, its middle and its last occurrence.
fn choose(points: &[String]) -> Vec<Place> {
    if let Some(point) = one_alone() {
        return points.contains(&point).then_some(Place { point, later: None }).into_iter().collect();
    }
    let mut chosen = Vec::new();
    for (name, count) in counts(points) {
        let point = |number: u32| format!("{name}:{number}");
        let places = occurrences(count).into_iter();
        chosen.extend(places.map(|(number, later)| Place { point: point(number), later: later.map(point) }));
    }
    chosen
}

/// The only place that is tried, to look into a failure.
fn one_alone() -> Option<String> {
    std::env::var("LONGHAUL_CRASH_AT").ok()
}

fn counts(points: &[String]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for point in points {
        *counts.entry(name_of(point).to_owned()).or_default() += 1;
    }
    counts
}

fn name_of(point: &str) -> &str {
    point.rsplit_once(':').map_or(point, |(name, _)| name)
}

/// The points at which the process was killed.
#[derive(Default)]
struct Tally {
    killed: Vec<String>,
    missed: Vec<String>,
}

impl Tally {
    fn count(&mut self, point: &str, killed: bool) {
        if killed { &mut self.killed } else { &mut self.missed }.push(point.to_owned());
    }

    fn report(self, points: &[String], chosen: &[Place]) {
        let names: BTreeSet<&str> = points.iter().map(|point| name_of(point)).collect();
        let covered: BTreeSet<&str> = self.killed.iter().map(|point| name_of(point)).collect();
        for (name, count) in counts(points) {
            println!("  {name}: reached {count} times");
        }
        println!("crash points covered: {} of {}", covered.len(), names.len());
        println!("kills survived: {} in {} runs, at places of {}", self.killed.len(), chosen.len(), points.len());
        if !self.missed.is_empty() {
            // How often an idle store makes itself quick to open depends on the time.
            println!("not reached this time: {}", self.missed.join(", "));
        }
        if one_alone().is_none() {
            assert_eq!(covered, names, "every point that a run reaches kills in some case");
        }
    }
}

/// Does the same for all, a few at once.
fn at_once<T: Sync>(all: &[T], one: impl Fn(&T) + Sync) {
    let next = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..LABS_AT_ONCE {
            scope.spawn(|| {
                loop {
                    let at = {
                        let mut next = next.lock().unwrap();
                        *next += 1;
                        *next - 1
                    };
                    let Some(item) = all.get(at) else { return };
                    one(item);
                }
            });
        }
    });
}
