//! Two projects over one data directory: a command acts on the run of its own.

use super::{GOAL, TOO_SLOW, features, lab, run_of, start_other, status_of, with_other};
use crate::common::lab::{Lab, Ran, Started, kill};
use crate::common::{DOER_CONFIG, Random, answers_printed, number, refused};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

#[test]
fn a_command_in_one_project_leaves_the_runs_of_others_alone() {
    let lab = lab();
    lab.fake.model_takes(TOO_SLOW);
    with_other(&lab);
    let mut other = start_other(&lab, &["run"]);
    other.wait_for("work on one");
    let run = run_of(&lab, "other");
    let before = status_of(&lab, &run);
    // None of them names a run, and none of them stands in the project whose run the owner of the data directory has.
    let changes: [&[&str]; 9] = [
        &["pause"],
        &["features", "drop", "one"],
        &["features", "add", "x", "--instruction", "Do it."],
        &["abandon"],
        &["answer", "--skip"],
        &["steer", ":one", "the other way"],
        &["cancel", ":one"],
        &["revert", "--to", "HEAD"],
        &["resume", "--retry-failing"],
    ];
    for change in changes {
        refused(&lab.run(change), &["no run of `", "/project`", "start one with `longhaul run`"]);
        let outside = |args: &[&str]| {
            let mut command = lab.command(&[change, args].concat());
            command.current_dir(lab.home());
            lab.start_command(command).wait()
        };
        refused(&outside(&["--project", "../project"]), &["no run of `", "/project`"]);
        // Where no project is, what could be meant is listed, and nothing is chosen.
        refused(&outside(&[]), &["is no project; name the run that you mean: ", &format!("{run} of `"), "/other`"]);
        refused(&lab.run(&[change, &["--project", "no-such"]].concat()), &[&run]);
    }
    for nothing in ["", "r", "r-"] {
        refused(&lab.run(&["pause", nothing]), &["names no run", "longhaul runs"]);
    }
    assert_eq!(status_of(&lab, &run)["status"], before["status"]);
    assert_eq!(features(&status_of(&lab, &run)), features(&before));

    // With a run of its own it acts on that one, wherever it is typed.
    let mut own = lab.start(&["run"]);
    own.wait_for("work on one");
    let mut pause = lab.command(&["--project", "../project", "pause"]);
    pause.current_dir(lab.path("other"));
    let paused = lab.start_command(pause).wait().expect(0);
    assert!(paused.stdout.contains(&run_of(&lab, "kept")), "{}", paused.said());
    own.wait().expect(4);
    assert_eq!(status_of(&lab, &run_of(&lab, "kept"))["status"], "paused");
    assert_eq!(status_of(&lab, &run)["status"], before["status"]);
}

/// One of the two projects, and what was done to it.
struct Side {
    directory: &'static str,
    name: &'static str,
    /// The client that started or resumed its run, and follows it.
    follower: Option<Started>,
    /// Features that were added to its newest run.
    added: u64,
}

/// Random commands in two projects, from everywhere, while servers come and go. Each names what it did to which run,
/// and that is a run of its own project. `LONGHAUL_SECONDS` says for how long.
#[test]
fn two_projects_and_a_server_over_one_data_directory_act_each_on_their_own() {
    let seconds: u64 = number("LONGHAUL_SECONDS").unwrap_or(8);
    let seed: u64 = number("LONGHAUL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("LONGHAUL_SEED={seed} LONGHAUL_SECONDS={seconds}");
    let lab = Lab::new(DOER_CONFIG, GOAL);
    with_other(&lab);
    let mut random = Random::new(seed, 0);
    let mut sides = [("project", "kept"), ("other", "other")].map(|(directory, name)| Side {
        directory,
        name,
        follower: None,
        added: 0,
    });
    let mut server: Option<Started> = None;
    let (mut commands, mut done, mut handed_over) = (0_u64, 0_u64, 0_u64);
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(seconds) {
        lab.fake.model_takes(Duration::from_millis(random.below(150)));
        lab.fake.posts_take(Duration::from_millis(random.below(100)));
        if random.below(12) == 0 {
            server = match server.take() {
                None => Some(lab.start(&["serve", "--no-token", "--listen", "127.0.0.1:0"])),
                Some(mut running) => {
                    // Before that no handler may receive a Ctrl-C.
                    while running.is_running() && !running.printed().contains("serving at") {
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    match random.below(3) {
                        0 => kill(running.pid()),
                        _ => running.interrupt(),
                    }
                    let ended = running.wait();
                    assert!(!ended.said().contains("panicked"), "{}", ended.said());
                    None
                }
            };
        }
        let at = usize::try_from(random.below(2)).expect("small");
        let [one, two] = &mut sides;
        let (own, others) = if at == 0 { (one, two) } else { (two, one) };
        commands += 1;
        let before = ids_added(&lab, others);
        let ran = own.act(&lab, &mut random);
        handed_over += own.reap();
        if let Some(ran) = ran {
            let code = ran.code();
            assert!(matches!(code, Some(0 | 1 | 3 | 4 | 5)), "LONGHAUL_SEED={seed}: {:?} {}", ran.status, ran.said());
            if code == Some(0) {
                done += 1;
                let named = ran.stdout.split_whitespace().find(|word| word.starts_with("r-")).unwrap_or_default();
                let project = project_of(&lab, named.trim_end_matches(':'));
                assert_eq!(project.as_deref(), Some(own.name), "LONGHAUL_SEED={seed}: {}", ran.said());
            }
        }
        assert_eq!(ids_added(&lab, others), before, "LONGHAUL_SEED={seed}: a command in {} reached", own.name);
    }
    if let Some(mut running) = server {
        running.kill();
        running.wait();
    }
    for side in &mut sides {
        if let Some(mut follower) = side.follower.take() {
            follower.kill();
            follower.wait();
        }
    }
    lab.fake.settle();
    for run in lab.runs() {
        let status = status_of(&lab, &run);
        let own = if status["project"] == "kept" { "kept" } else { "other" };
        let foreign =
            features(&status).into_iter().map(|(id, _)| id).find(|id| id.contains('-') && !id.starts_with(own));
        assert_eq!(foreign, None, "LONGHAUL_SEED={seed}: {status:#}");
    }
    // Nothing was sent twice, by any owner of the data directory.
    let keys: Vec<String> = lab.fake.posts().into_iter().map(|told| told.key).collect();
    let once: BTreeSet<&String> = keys.iter().collect();
    println!(
        "{commands} commands, {done} of them done, {} runs, {} posts, {handed_over} followers ended",
        lab.runs().len(),
        keys.len()
    );
    assert_eq!(keys.len(), once.len(), "LONGHAUL_SEED={seed}: sent twice");
    assert!(done > 0, "something was done");
}

/// The features of all runs of a project that were added or dropped by hand.
fn ids_added(lab: &Lab, side: &Side) -> Vec<(String, bool)> {
    let answer = lab.json(&["runs"]);
    let runs = answer["items"].as_array().expect("a list").iter().filter(|run| run["project"] == side.name);
    let of_run = |run: &Value| features(&status_of(lab, run["run"].as_str().expect("a name")));
    let by_hand = |(id, status): (String, String)| {
        let is_dropped = status == "dropped";
        (id.contains('-') || is_dropped).then_some((id, is_dropped))
    };
    runs.flat_map(of_run).filter_map(by_hand).collect()
}

fn project_of(lab: &Lab, run: &str) -> Option<String> {
    let answer = lab.json(&["runs"]);
    let runs = answer["items"].as_array().expect("a list");
    runs.iter().find(|one| one["run"] == run).and_then(|one| one["project"].as_str()).map(str::to_owned)
}

impl Side {
    /// Has something done in the project: from its directory, or from elsewhere with a relative path to it. None where
    /// it goes on beside.
    fn act(&mut self, lab: &Lab, random: &mut Random) -> Option<Ran> {
        let args: Vec<String> = match random.below(12) {
            0..=3 if self.follower.is_none() => {
                self.follower = Some(self.start(lab, random, &["run"]));
                return None;
            }
            4 | 5 if self.follower.is_none() => {
                self.follower = Some(self.start(lab, random, &["resume"]));
                return None;
            }
            6 => vec!["pause".to_owned()],
            7 | 8 => {
                self.added += 1;
                let id = format!("{}-{}", self.name, self.added);
                ["features", "add", &id, "--instruction", "Do it.", "--criterion", "It is."].map(str::to_owned).to_vec()
            }
            9 if self.added > 0 => {
                let id = format!("{}-{}", self.name, 1 + random.below(self.added));
                ["features", "drop", &id].map(str::to_owned).to_vec()
            }
            10 if random.below(4) == 0 => vec!["abandon".to_owned()],
            10 => {
                if let Some(follower) = &self.follower {
                    follower.interrupt();
                }
                return None;
            }
            _ => {
                // A person who finds it waiting types the printed command.
                let said = self.start(lab, random, &["status"]).wait();
                for answer in answers_printed(lab, &said.stdout) {
                    answer.run(lab);
                }
                return (said.code() == Some(0)).then_some(said);
            }
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        Some(self.start(lab, random, &args).wait())
    }

    fn start(&self, lab: &Lab, random: &mut Random, args: &[&str]) -> Started {
        let beside = ["project", "other"][usize::try_from(random.below(2)).expect("small")];
        let project = format!("../{}", self.directory);
        let mut command = match random.below(2) {
            0 => lab.command(args),
            _ => lab.command(&[&["--project", &project], args].concat()),
        };
        let is_elsewhere = command.get_args().any(|arg| arg == "--project");
        command.current_dir(lab.path(if is_elsewhere { beside } else { self.directory }));
        lab.start_command(command)
    }

    /// Takes note of a follower that has ended: it said nothing of a run of another project as if it was its own.
    fn reap(&mut self) -> u64 {
        if self.follower.as_mut().is_none_or(Started::is_running) {
            return 0;
        }
        let ran = self.follower.take().expect("there is one").wait();
        let begins = |line: &&str| line.starts_with("run r-") && line.contains(", on branch ");
        if let Some(line) = ran.stdout.lines().find(begins) {
            assert!(line.contains(&format!(" of {},", self.name)), "{}", ran.said());
        }
        assert!(!ran.said().contains("panicked"), "{}", ran.said());
        1
    }
}
