//! Programs in gVisor's `runsc`: with `runsc.py`, a small stand-in that checks its input, and with the real one if PATH
//! has it.

use crate::lab::{self, as_each_user, attack, blocking, check_refused, host, own_lab, program, write_report};
use longhaul_sandbox::{Level, Program, ProgramInput, ProgramOutput, ScratchDirectory, run, start};
use rustix::process::{WaitOptions, set_child_subreaper, wait};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const STAND_IN: &str = include_str!("../runsc.py");

/// Prints a warning, and confines nothing.
const BROKEN: &str = "#!/bin/sh\necho a warning >&2\necho 'running container: no' >&2\nexit 128\n";

/// A directory that has `script` as `runsc`, for every user.
fn installed(script: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = dir.path().join("runsc");
    std::fs::write(&file, script).unwrap();
    for path in [dir.path(), &file] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    dir
}

/// Runs a test with `dir` as PATH, once for each user.
fn with_path(test: &str, dir: &Path) -> Vec<String> {
    let path = format!("PATH={}", dir.display());
    as_each_user(test, |_| vec!["/usr/bin/env".to_owned(), path.clone()])
}

/// Runs a test with the stand-in, and with the real one, once for each user.
fn with_each(test: &str) -> Vec<String> {
    let stand_in = installed(STAND_IN);
    let mut reports = with_path(test, stand_in.path());
    let path = std::env::var_os("PATH").unwrap_or_default();
    match std::env::split_paths(&path).find(|dir| dir.join("runsc").is_file()) {
        Some(dir) => reports.extend(with_path(test, &dir)),
        None => eprintln!("skipped: gVisor's runsc is not installed"),
    }
    reports
}

fn held(words: &[&str]) -> Program {
    Program { level_min: Level::Runsc, ..program(words) }
}

#[test]
fn asked_for_and_absent_it_is_refused_with_what_would_allow_it() {
    let test = "runsc::asked_for_and_absent_it_is_refused_with_what_would_allow_it";
    if let Some(lab) = own_lab() {
        let refused = blocking(run(&host(&lab), &held(&["true"]))).unwrap_err();
        return write_report(&lab, &refused.to_string());
    }
    for report in with_path(test, Path::new("/nowhere")) {
        assert!(report.contains("does not give the sandbox level `runsc`: `runsc` is in no directory"), "{report}");
        assert!(report.contains("install gVisor's `runsc`") && report.contains("`sandbox_min`"), "{report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn where_it_fails_the_program_is_refused_with_its_last_words() {
    if let Some(lab) = own_lab() {
        let refused = blocking(run(&host(&lab), &held(&["true"]))).unwrap_err();
        return write_report(&lab, &refused.to_string());
    }
    let broken = installed(BROKEN);
    for report in with_path("runsc::where_it_fails_the_program_is_refused_with_its_last_words", broken.path()) {
        assert!(report.contains("sandbox level `runsc`: running container: no; install"), "{report}");
        assert_eq!(report.lines().count(), 1, "{report}");
    }
}

#[test]
fn not_asked_for_it_is_never_started() {
    if let Some(lab) = own_lab() {
        let levels = [Level::None, Level::Landlock, Level::Namespaces, Level::Full].map(|level_min| {
            let program = Program { level_min, ..program(&["true"]) };
            blocking(run(&host(&lab), &program)).unwrap().level
        });
        return write_report(&lab, &format!("{levels:?}"));
    }
    let stand_in = installed(STAND_IN);
    for report in with_path("runsc::not_asked_for_it_is_never_started", stand_in.path()) {
        assert_eq!(report, "[Full, Full, Full, Full]");
    }
}

#[test]
fn a_program_in_it_has_its_input_its_outputs_and_its_exit_code() {
    if let Some(lab) = own_lab() {
        let host = host(&lab);
        let done = blocking(run(&host, &held(&["sh", "-c", "echo out; echo err >&2; id -u; exit 7"]))).unwrap();
        let piped = Program { input: ProgramInput::Pipe, output: ProgramOutput::Pipe, ..held(&["cat"]) };
        let echoed = blocking(async {
            let mut running = start(&host, ScratchDirectory::new(&host).unwrap(), &piped).await.unwrap();
            let (mut input, mut output) = (running.take_stdin().unwrap(), running.take_stdout().unwrap());
            input.write_all(b"through").await.unwrap();
            drop(input);
            let mut echoed = String::new();
            output.read_to_string(&mut echoed).await.unwrap();
            format!("{echoed} {:?} {:?}", running.level(), running.ended().await)
        });
        let signalled = blocking(run(&host, &held(&["sh", "-c", "kill -9 $$"]))).unwrap();
        // Browsers and MCP servers start this very binary by its link.
        let own = blocking(run(&host, &held(&["/proc/self/exe", "no specification"]))).unwrap();
        assert!(own.stderr.contains("refused expected"), "{own:?}");
        let codes = (done.level, done.exit_code, done.hit, signalled.exit_code);
        return write_report(&lab, &format!("{codes:?}\n{}{}{echoed}", done.stderr, done.stdout));
    }
    for report in with_each("runsc::a_program_in_it_has_its_input_its_outputs_and_its_exit_code") {
        let (head, user) = report.split_once("out\n").unwrap_or_else(|| panic!("{report}"));
        assert_eq!(head, "(Runsc, 7, None, 137)\nerr\n");
        let (user, echoed) = user.split_once('\n').unwrap();
        assert!(user == "1000" || user == lab::NOBODY.to_string(), "{report}");
        assert_eq!(echoed, "through Runsc (None, \"\")");
    }
}

/// The stand-in's view, as it reports to the program.
#[test]
fn it_shows_the_allow_list_and_nothing_else() {
    if let Some(lab) = own_lab() {
        let mut program = held(&["cat", "/tmp/tmp/seen.json"]);
        (program.read, program.write) = (vec![lab.join("granted")], vec![lab.join("checkout")]);
        let done = blocking(run(&host(&lab), &program)).unwrap();
        return write_report(&lab, &format!("{}\n{}", lab.display(), done.stdout));
    }
    let stand_in = installed(STAND_IN);
    for report in with_path("runsc::it_shows_the_allow_list_and_nothing_else", stand_in.path()) {
        let (lab, seen) = report.split_once('\n').unwrap();
        let seen: serde_json::Value = serde_json::from_str(seen).unwrap_or_else(|_| panic!("{report}"));
        let ours = lab.split('/').nth(1).unwrap();
        let mut top: Vec<&str> = seen["top"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        top.retain(|name| !["lib32", "lib64", "libx32", "nix", "gnu", ours].contains(name));
        assert_eq!(top, [".longhaul", "bin", "dev", "etc", "lib", "proc", "run", "sbin", "sys", "tmp", "usr", "var"]);
        let shown = seen["shown"].as_array().unwrap().iter().map(|path| path.as_str().unwrap());
        let system = ["/usr", "/bin", "/sbin", "/lib", "/nix/store", "/gnu/store", "/etc/", "/dev/"];
        let further = shown.filter(|path| !system.iter().any(|dir| path.starts_with(dir)));
        // They come in the order of their names, and the laboratory may stand before or after `/tmp`.
        let further: BTreeSet<&str> = further.collect();
        let granted = [format!("{lab}/checkout"), format!("{lab}/granted")];
        assert_eq!(further, ["/.longhaul", "/tmp", &granted[0], &granted[1]].into());
        let binds = seen["mounts"].as_array().unwrap().iter().filter(|mount| mount["type"] == "bind");
        let writable: BTreeSet<&str> = binds.map(|mount| mount["destination"].as_str().unwrap()).collect();
        assert_eq!(writable, ["/tmp", &granted[0]].into(), "what may be changed");
    }
}

#[test]
fn a_program_in_it_reads_what_is_granted_and_changes_what_may_be_changed() {
    if let Some(lab) = own_lab() {
        let service = UnixListener::bind(lab.join("granted/service")).unwrap();
        std::fs::set_permissions(lab.join("granted/service"), PermissionsExt::from_mode(0o777)).unwrap();
        std::thread::spawn(move || service.accept().unwrap().0.write_all(b"served").unwrap());
        let script = "import os, socket, sys\n\
                      lab = sys.argv[1]\n\
                      print(open(lab + '/granted/seen').read(), sorted(os.listdir()), sorted(os.listdir(lab)))\n\
                      for path in ['/checkout/new', '/granted/new', '/granted/seen', '/home/new']:\n\
                      \x20   try: print(open(lab + path, 'w').write('changed'))\n\
                      \x20   except OSError as error: print(error.strerror)\n\
                      open('new', 'w').write('in the tree')\n\
                      way = socket.socket(socket.AF_UNIX)\n\
                      way.connect(lab + '/granted/service')\n\
                      print(way.recv(6))";
        let mut program = held(&["python3", "-c", script, lab.to_str().unwrap()]);
        (program.read, program.write) = (vec![lab.join("granted")], vec![lab.join("checkout")]);
        program.tree = Some(lab.join("tree"));
        std::fs::create_dir(lab.join("tree")).unwrap();
        std::fs::write(lab.join("tree/old"), "old").unwrap();
        let done = blocking(run(&host(&lab), &program)).unwrap();
        let mut changed = String::new();
        for name in ["checkout/new", "tree/new", "granted/seen"] {
            std::fs::File::open(lab.join(name)).unwrap().read_to_string(&mut changed).unwrap();
            changed.push('\n');
        }
        return write_report(&lab, &format!("{}{}{changed}", done.stderr, done.stdout));
    }
    for report in with_each("runsc::a_program_in_it_reads_what_is_granted_and_changes_what_may_be_changed") {
        let lines: Vec<&str> = report.lines().collect();
        assert_eq!(lines[0], "SECRET ['old'] ['checkout', 'granted']", "{report}");
        assert_eq!(lines[1], "7", "{report}");
        assert!(
            lines[2..5].iter().all(|line| line.starts_with("Read-only")
                || line.starts_with("Permission")
                || line.starts_with("No such file")),
            "{report}"
        );
        assert_eq!(lines[5..], ["b'served'", "changed", "in the tree", "SECRET"], "{report}");
    }
}

#[test]
fn limits_end_a_program_in_it_and_leave_nothing() {
    if let Some(lab) = own_lab() {
        set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        let mut said = String::new();
        let daemon = "setsid sleep 300 & ";
        let tried = [
            ("cpu_seconds_max", "while :; do :; done"),
            ("file_bytes_max", "exec head -c 2000000 /dev/zero > big"),
            ("wall_ms_max", "trap 'echo asked' TERM; sleep 300 & wait; sleep 300"),
            ("processes_max", "while :; do sleep 300 & done"),
            ("", "exec python3 -c 'bytearray(600 << 20)'"),
            ("", "exit 3"),
        ];
        for (limit, script) in tried {
            let mut program = held(&["sh", "-c", &format!("{daemon}{script}")]);
            let limits = &mut program.limits;
            (limits.cpu_seconds_max, limits.file_bytes_max, limits.memory_bytes_max) = (1, 1_000_000, 512 << 20);
            (limits.processes_max, limits.grace_ms) = (20, 500);
            limits.wall_ms_max = if limit == "wall_ms_max" { 1_200 } else { 20_000 };
            let done = blocking(run(&host(&lab), &program)).unwrap();
            let hit = done.hit.map(|hit| hit.name).unwrap_or_default();
            // Processes that die in the kernel's own time remain until then.
            wait_until(|| children().is_empty());
            let left = std::fs::read_dir(lab.join("scratch")).unwrap().count();
            let last = done.stderr.lines().last().unwrap_or_default();
            said.push_str(&format!("{limit}: {hit} {} {} {left} {last}\n", done.exit_code, done.stdout.trim()));
        }
        return write_report(&lab, &said);
    }
    for report in with_each("runsc::limits_end_a_program_in_it_and_leave_nothing") {
        let lines: Vec<&str> = report.lines().collect();
        let is = |line: usize, start: &str| assert!(lines[line].starts_with(start), "{report}");
        is(0, "cpu_seconds_max: cpu_seconds_max -1  1");
        is(1, "file_bytes_max: file_bytes_max -1  1");
        is(2, "wall_ms_max: wall_ms_max -1 asked 1");
        // The shell may notice first that it gets no more processes.
        let is_crowded = ["processes_max -1  1", " 2  1"].iter().any(|how| lines[3].contains(how));
        assert!(is_crowded && lines[3].starts_with("processes_max: "), "{report}");
        assert_eq!(lines[4..], [":  1  1 MemoryError", ":  3  1 "], "{report}");
    }
}

#[test]
fn it_ends_with_the_host_however_that_ends() {
    let test = "runsc::it_ends_with_the_host_however_that_ends";
    if let Some(lab) = own_lab() {
        if std::env::var_os("LONGHAUL_HOST").is_some() {
            let _ = blocking(run(&host(&lab), &held(&["sh", "-c", "setsid sleep 300 & echo > begun; sleep 300"])));
            return;
        }
        set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        let this = std::env::current_exe().unwrap();
        let mut command = Command::new(this);
        command.args([test, "--exact"]).env("LONGHAUL_HOST", "1").stdout(Stdio::null());
        let mut host = command.spawn().unwrap();
        let begun =
            || lab.join("scratch").read_dir().unwrap().flatten().any(|room| room.path().join("work/begun").exists());
        wait_until(begun);
        let before = children_of(host.id()).len();
        host.kill().unwrap();
        host.wait().unwrap();
        wait_until(|| children().is_empty());
        return write_report(&lab, &format!("{before}"));
    }
    for report in with_each(test) {
        assert_eq!(report, "1", "the outer process, with all below it");
    }
}

#[test]
fn every_attack_from_inside_it_is_refused() {
    if let Some(lab) = own_lab() {
        let done = attack(&lab, Level::Runsc).unwrap();
        return write_report(&lab, &format!("{:?}\n{}{}", done.level, done.stderr, done.stdout));
    }
    for report in with_each("runsc::every_attack_from_inside_it_is_refused") {
        assert!(report.starts_with("Runsc\n"), "{report}");
        check_refused(&report);
    }
}

/// Remaining processes, once those that have ended are gone.
fn children() -> Vec<i32> {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
    children_of(std::process::id())
}

fn children_of(process: u32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<i32>>()).collect()
}

#[track_caller]
fn wait_until(is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(20), "it never was so");
        std::thread::sleep(Duration::from_millis(20));
    }
}
