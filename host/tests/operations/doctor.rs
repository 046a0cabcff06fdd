//! `longhaul doctor`: it finds what is broken and says what to do.

use crate::common;
use crate::{passing, set_resources};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

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
    set_resources(&lab, "[program]\nmax_memory = 1\n");
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
    // An existing thing needs no remedy.
    assert!(!told.contains("level `landlock`") || !told.contains("lsm=landlock"), "{told}");
    assert_eq!(told.contains("longhaul runs as root, and programs as user 65533"), is_root, "{told}");
    let closed = format!("may not pass `{}`", lab.path("").canonicalize().expect("there").display());
    assert_eq!(told.contains("BROKEN") && told.contains(&closed), is_root, "{told}");
    fs::set_permissions(lab.path(""), fs::Permissions::from_mode(0o711)).expect("ours");
    let told = sandbox(0);
    assert!(told.contains("(less)") && !told.contains("may not pass"), "{told}");
}

/// Commands that work within the limits of a check, and commands that need more.
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
