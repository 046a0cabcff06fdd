//! The corpus of bombs: each ends as it must, in one host, which is small and healthy afterwards.

use super::{PATIENCE, block_on, stays_healthy};
use crate::common::guests::guest;
use crate::common::guests::lab::{Lab, private_directory};
use longhaul::bombs::BombVerdict;
use longhaul_bombs::{Bomb, ExpectedEnd, corpus};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The most memory that the host may hold, in bytes: the corpus has megabytes that could become gigabytes.
const HOST_BYTES_MAX: u64 = 512 << 20;

/// Holds all that `wanted` says, one after the other.
fn hold(wanted: impl Fn(&Bomb) -> bool) {
    let directory = private_directory();
    let program = env!("CARGO_BIN_EXE_longhaul").into();
    let engine =
        longhaul::bombs::engine(directory.path().join("cache"), program).unwrap_or_else(|error| panic!("{error}"));
    let mut lost = Vec::new();
    block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &guest("healthy")).await;
        for bomb in corpus().iter().filter(|bomb| wanted(bomb)) {
            let outcome = tokio::time::timeout(PATIENCE, longhaul::bombs::hold(&engine, bomb)).await;
            let outcome = outcome.unwrap_or_else(|_| panic!("`{}` has no end", bomb.name));
            println!("{} {} ms, {:?}: {}", bomb.name, outcome.ms, bomb.end, outcome.said);
            if outcome.verdict != BombVerdict::Held {
                lost.push(format!("{} must end as {:?}, and: {}", bomb.name, bomb.end, outcome.said));
            }
        }
        stays_healthy(&lab, &healthy).await;
    });
    assert!(lost.is_empty(), "{} bombs are not held:\n{}", lost.len(), lost.join("\n"));
    let peak = peak_bytes();
    assert!(peak < HOST_BYTES_MAX, "the host held {peak} bytes");
}

/// The most memory that this process ever had.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn exhausts(bomb: &Bomb) -> bool {
    bomb.end == ExpectedEnd::Exhausted
}

#[test]
fn every_bomb_that_is_refused_or_harmless_ends_as_it_must() {
    hold(|bomb| !exhausts(bomb));
}

/// One for each way to end: at the stack, at memory, at processor time. Each takes a second of a processor, so the
/// others are held where `LONGHAUL_BOMBS` is set, and by `longhaul doctor --bombs`.
const EXHAUSTING: [&str; 3] = [
    "types-of-instances-nested-by-the-hundred-thousand",
    "instances-that-multiply",
    "locals-of-thousands-of-functions",
];

#[test]
fn every_bomb_that_exhausts_the_compiler_ends_there() {
    let all = std::env::var_os("LONGHAUL_BOMBS").is_some();
    hold(|bomb| exhausts(bomb) && (all || EXHAUSTING.contains(&bomb.name)));
}

/// The exit code and the output of `longhaul doctor --bombs` for the bombs whose names contain `part`, with `program`.
fn doctor(program: &Path, part: &str) -> (Option<i32>, String) {
    let mut doctor = std::process::Command::new(env!("CARGO_BIN_EXE_longhaul"));
    let output = doctor.args(["doctor", "--bombs", part]).env("LONGHAUL_PROGRAM", program).output().expect("it starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_doctor_holds_bombs_in_processes_of_their_own_and_says_how_each_ended() {
    let program = Path::new(env!("CARGO_BIN_EXE_longhaul"));
    let (code, said) = doctor(program, "start-that");
    assert_eq!(code, Some(0), "{said}");
    let held: Vec<&str> = said.lines().filter(|line| line.starts_with("held ") && line.contains(" MiB ")).collect();
    assert_eq!(held.len(), 2, "{said}");
    assert!(said.ends_with("2 of 2 bombs held\n"), "{said}");
    assert_eq!(doctor(program, "no-such-bomb").0, Some(1));
}

/// Every failure of the compiler used to count as a refusal of the bomb.
#[test]
fn bombs_that_no_compiler_could_be_started_for_are_not_held() {
    let directory = private_directory();
    let engine = longhaul::bombs::engine(directory.path().join("cache"), directory.path().join("gone"));
    let engine = engine.unwrap_or_else(|error| panic!("{error}"));
    let is_compiled = |end| matches!(end, ExpectedEnd::Invalid | ExpectedEnd::CallCap(_) | ExpectedEnd::Trap);
    let mut tried = 0;
    for bomb in corpus().iter().filter(|bomb| is_compiled(bomb.end) || EXHAUSTING.contains(&bomb.name)) {
        let outcome = block_on(longhaul::bombs::hold(&engine, bomb));
        assert_eq!(outcome.verdict, BombVerdict::NotTried, "{}: {}", bomb.name, outcome.said);
        tried += 1;
    }
    assert!(tried > 40, "{tried}");
    // One that holds the bomb, and has no compiler.
    let program = directory.path().join("longhaul");
    let text = format!(
        "#!/bin/sh\nLONGHAUL_PROGRAM='{}' exec '{}' \"$@\"\n",
        directory.path().join("gone").display(),
        env!("CARGO_BIN_EXE_longhaul")
    );
    std::fs::write(&program, text).expect("ours");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).expect("ours");
    let (code, said) = doctor(&program, "memory-");
    let (last, bombs) =
        said.lines().collect::<Vec<_>>().split_last().map(|(last, all)| (*last, all.to_vec())).expect("lines");
    assert!(bombs.len() > 3 && bombs.iter().all(|line| line.starts_with("NOT TRIED ")), "{said}");
    assert_eq!(last, format!("0 of {0} bombs held, {0} not tried", bombs.len()));
    assert_eq!(code, Some(1));
}
