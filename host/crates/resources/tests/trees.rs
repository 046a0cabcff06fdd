//! Trees of real processes: measured, and ended.

use longhaul_resources::{
    Process, ProcessTable, ProcessUsage, ResourceError, ResourceLimits, Sampler, TreeEnd, end_tree,
};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A shell that leads a group and says when it is ready.
fn shell(script: &str) -> (Child, Process) {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).process_group(0).stdout(Stdio::piped()).stdin(Stdio::null());
    let mut child = command.spawn().expect("a shell");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it says a line");
    let table = ProcessTable::read().expect("the machine tells");
    let process = table.named(child.id()).expect("it runs").process;
    (child, process)
}

fn left(root: Process) -> usize {
    ProcessTable::read().expect("the machine tells").tree(root).len()
}

const NO_KEEPER: &dyn Fn(&longhaul_resources::Stat) -> bool = &|_| false;

#[test]
fn a_tree_that_hears_goes_when_it_is_asked() {
    let (mut child, root) = shell("sleep 600 & sleep 600 & echo ready; wait");
    assert_eq!(left(root), 3);
    let usage = Sampler::default().tree(&ProcessTable::read().unwrap(), root).unwrap();
    assert!(usage.num_children == 2 && usage.num_threads == 3 && usage.memory_mb > 0.0, "{usage:?}");
    let ended = end_tree(root, Duration::from_secs(30), NO_KEEPER).unwrap();
    assert_eq!(ended, TreeEnd { asked: 3, killed: 0 });
    child.wait().unwrap();
    assert_eq!(left(root), 0);
}

#[test]
fn a_tree_that_does_not_hear_is_killed_with_what_it_started() {
    let (mut child, root) =
        shell("trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo ready; while :; do sleep 0.05; done");
    let ended = end_tree(root, Duration::from_millis(300), NO_KEEPER).unwrap();
    assert!(ended.killed >= 2, "{ended:?}");
    child.wait().unwrap();
    assert_eq!(left(root), 0);
}

#[test]
fn what_lost_its_parent_is_ended_too() {
    let (mut child, root) = shell("sh -c 'trap \"\" TERM; sleep 600 & echo ready; sleep 600' & wait");
    // The middle one is killed, and its child belongs to process 1 from then on.
    let table = ProcessTable::read().unwrap();
    let middle = table.tree(root).iter().find(|stat| stat.parent == root.pid).map(|stat| stat.process).unwrap();
    let killed = Command::new("kill").args(["-9", &middle.pid.to_string()]).status().unwrap();
    assert!(killed.success());
    while ProcessTable::read().unwrap().get(middle).is_some() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = end_tree(root, Duration::from_millis(300), NO_KEEPER);
    child.wait().unwrap();
    assert_eq!(left(root), 0);
}

#[test]
fn a_keeper_is_not_asked_and_what_it_keeps_may_tidy_up() {
    let script = "trap 'echo early; exit 1' TERM; sh -c 'trap \"echo tidy; exit 0\" TERM; echo ready; while :; do sleep 0.05; done'; exit 7";
    let (mut child, root) = shell(script);
    let ended = end_tree(root, Duration::from_secs(30), &|stat| stat.process == root).unwrap();
    assert_eq!(ended.killed, 0, "{ended:?}");
    assert_eq!(child.wait().unwrap().code(), Some(7), "it was not interrupted");
}

#[test]
fn a_process_that_is_gone_is_an_error_and_nobody_else_is_hit() {
    let (mut child, root) = shell("echo ready; sleep 600");
    let other = Process { start_ticks: root.start_ticks + 1, ..root };
    let refused = end_tree(other, Duration::ZERO, NO_KEEPER).unwrap_err();
    assert!(matches!(refused, ResourceError::Absent { pid } if pid == root.pid), "{refused}");
    assert!(child.try_wait().unwrap().is_none(), "who has the number now goes on");
    end_tree(root, Duration::from_secs(30), NO_KEEPER).unwrap();
    child.wait().unwrap();
    assert!(matches!(end_tree(root, Duration::ZERO, NO_KEEPER), Err(ResourceError::Absent { .. })));
}

#[test]
fn a_busy_tree_shows_the_processor_time_that_it_had() {
    let (mut child, root) = shell("echo ready; while :; do :; done");
    let mut sampler = Sampler::default();
    sampler.tree(&ProcessTable::read().unwrap(), root).unwrap();
    let mut usage = ProcessUsage::default();
    // A busy machine gives it a share in the end.
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(150));
        usage = sampler.tree(&ProcessTable::read().unwrap(), root).unwrap();
        if usage.cpu_percent > 0.0 {
            break;
        }
    }
    end_tree(root, Duration::from_secs(30), NO_KEEPER).unwrap();
    child.wait().unwrap();
    assert!(usage.cpu_percent > 0.0 && usage.cpu_percent < 400.0, "{usage:?}");
}

/// Runs the cases of the suite `executor_tasks` of `$LONGHAUL_CASES` that are about limits.
#[test]
fn each_of_the_cases_of_limits_has_its_answer() {
    let own = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/cases"));
    let directory = std::env::var_os("LONGHAUL_CASES").map_or_else(own, PathBuf::from);
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        let text = std::fs::read(entry.path()).unwrap_or_default();
        let Ok(suite) = serde_json::from_slice::<serde_json::Value>(&text) else { continue };
        let cases = suite["cases"].as_array().into_iter().flatten().filter(|_| suite["suite"] == "executor_tasks");
        for case in cases.filter(|case| case["usage"].is_object()) {
            let usage: ProcessUsage = serde_json::from_value(case["usage"].clone()).unwrap();
            let limits: ResourceLimits = serde_json::from_value(case["limits"].clone()).unwrap();
            assert_eq!(Some(limits.exceeds(&usage)), case["expected"].as_bool(), "{}", case["id"]);
            seen += 1;
        }
    }
    assert!(seen > 0, "no case is about limits");
}
