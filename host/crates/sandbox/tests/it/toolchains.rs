//! The files that tool chains show to a program: attempts to extend them, each refused, and honest uses that work.
//!
//! Each test runs itself once more as a host of its own, whose home is that of the lab and whose PATH begins with
//! directories of the lab, as in a shell that a project set up.

use crate::lab::{as_each_user, attack_path, blocking, host, own_lab, program, words, write_report};
use longhaul_sandbox::{Level, Program, run};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Prints every file that can be read below the directories that it is given.
const READ_ALL: &str = "for dir; do find \"$dir\" -type f -exec cat {} + 2>/dev/null; done; echo end";

/// Variables that name the paths of tool chains, their caches and their settings.
const VARIABLES: [&str; 12] = [
    "CARGO_HOME",
    "CONDA_PREFIX",
    "GOENV",
    "GOMODCACHE",
    "GOPATH",
    "GOROOT",
    "NODE_PATH",
    "PYENV_ROOT",
    "RUSTUP_HOME",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
];

/// A host with `dirs` of the lab before its PATH.
fn with_path(dirs: &[&str]) -> Vec<String> {
    let dirs: String = dirs.iter().map(|dir| format!("\"${}/{dir}\":", attack_path())).collect();
    words(&["sh", "-c", &format!("PATH={dirs}$PATH; export PATH; exec \"$0\" \"$@\"")])
}

fn make(path: &Path, text: &str, mode: u32) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// The files that a program reads below `dirs`, with the host's PATH unless `env` has another.
fn read_all(lab: &Path, dirs: &[&Path], env: &[(&str, String)]) -> String {
    let mut argv = words(&["/bin/sh", "-c", READ_ALL, "sh"]);
    argv.extend(dirs.iter().map(|dir| dir.display().to_string()));
    let mut program = Program::new("`test`", argv);
    program.env = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    program.limits.memory_bytes_max = u64::MAX;
    let done = blocking(run(&host(lab), &program)).unwrap();
    assert_eq!(done.level, Level::Full);
    format!("{}{}", done.stdout, done.stderr)
}

#[test]
fn no_variable_of_a_program_shows_it_a_directory() {
    if let Some(lab) = own_lab() {
        ["tools/cargo", "tools/go"].iter().for_each(|tool| make(&lab.join(tool), "#!/bin/sh\n", 0o755));
        let vault = lab.join("home/vault");
        let below = ["bin/key", "cargo", "config.toml", "go/env", "pkg/mod/key", "registry/key", "toolchains/key"];
        below.iter().for_each(|name| make(&vault.join(name), "SECRET", 0o755));
        make(&lab.join("go.env"), &format!("GOMODCACHE={}\n", vault.display()), 0o644);
        let shown = |path: &Path| path.display().to_string();
        let mut report = String::new();
        let mut check = |env: &[(&str, String)]| {
            report.push_str(&format!("{env:?}: {}", read_all(&lab, &[&vault], env)));
        };
        for variable in VARIABLES {
            check(&[(variable, shown(&vault))]);
        }
        check(&[("GOENV", shown(&lab.join("go.env")))]);
        for dir in ["", "bin"] {
            check(&[("PATH", format!("{}:/usr/bin:/bin", shown(&vault.join(dir))))]);
        }
        return write_report(&lab, &report);
    }
    for report in as_each_user("toolchains::no_variable_of_a_program_shows_it_a_directory", |_| with_path(&["tools"])) {
        assert_eq!(report.matches("end\n").count(), VARIABLES.len() + 3, "{report}");
        let shown: Vec<&str> = report.lines().filter(|line| line.contains("SECRET")).collect();
        assert!(shown.is_empty(), "{shown:#?}");
    }
}

/// The checkout has a fake installation and a fake environment, as a repository may commit them.
#[test]
fn a_directory_of_programs_shows_nothing_of_the_home_or_the_checkout_around_it() {
    if let Some(lab) = own_lab() {
        let checkout = lab.join("checkout");
        for tool in ["home/bin/tool", "checkout/bin/tool", "checkout/bin/python", "project/bin/tool"] {
            make(&lab.join(tool), "#!/bin/sh\n", 0o755);
        }
        for name in ["home/lib/x", "checkout/lib/python3/x", "checkout/pyvenv.cfg", "project/lib/x", "project/.env"] {
            make(&lab.join(name), "SECRET", 0o644);
        }
        // Environments that lead out of themselves, or are the checkout by another name.
        make(&checkout.join("env/pyvenv.cfg"), "home = /usr/bin\n", 0o644);
        make(&checkout.join("env/bin/python"), "#!/bin/sh\n", 0o755);
        std::fs::create_dir_all(checkout.join("env/lib/python3")).unwrap();
        make(&checkout.join("env/.env"), "SECRET", 0o644);
        symlink(lab.join("home"), checkout.join("env/share")).unwrap();
        symlink(lab.join("home"), checkout.join("env/lib64")).unwrap();
        symlink(".", checkout.join("here")).unwrap();
        let mut dirs = vec![checkout.as_path(), lab.join("home").leak()];
        let keys = lab.join("project/.env");
        dirs.push(&keys);
        let report = read_all(&lab, &dirs, &[]);
        let tool = Program::new("`test`", words(&["tool"]));
        let done = blocking(run(&host(&lab), &tool)).unwrap();
        return write_report(&lab, &format!("{report}{:?} {}", done.exit_code, done.stderr));
    }
    let test = "toolchains::a_directory_of_programs_shows_nothing_of_the_home_or_the_checkout_around_it";
    let path = ["project/bin", "home/bin", "checkout/bin", "checkout/env/bin", "checkout/here/bin"];
    for report in as_each_user(test, |_| with_path(&path)) {
        assert!(!report.contains("SECRET"), "{report}");
        assert!(report.contains("end\n0 "), "programs in such directories are found: {report}");
    }
}

/// As its archive unpacks without a directory of its own.
#[test]
fn a_browser_in_a_home_shows_what_browsers_have_and_no_key_beside_it() {
    if let Some(lab) = own_lab() {
        let home = lab.join("home");
        for (name, mode) in [("chrome", 0o755), ("icudtl.dat", 0o644), ("locales/en.pak", 0o644)] {
            make(&home.join(name), &format!("{name}\n"), mode);
        }
        let mut program = Program::new("`test`", words(&["/bin/sh", "-c", READ_ALL, "sh", home.to_str().unwrap()]));
        program.starts = Some(home.join("chrome").display().to_string());
        let done = blocking(run(&host(&lab), &program)).unwrap();
        return write_report(&lab, &format!("{:?}\n{}", done.level, done.stdout));
    }
    for report in
        as_each_user("toolchains::a_browser_in_a_home_shows_what_browsers_have_and_no_key_beside_it", |_| vec![])
    {
        let mut lines: Vec<&str> = report.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["Full", "chrome", "end", "icudtl.dat", "locales/en.pak"], "{report}");
    }
}

#[test]
fn an_environment_in_the_checkout_runs_and_shows_nothing_beside_it() {
    if let Some(lab) = own_lab() {
        let venv = lab.join("checkout/.venv");
        let made = Command::new("/usr/bin/python3").args(["-m", "venv", "--without-pip"]).arg(&venv).output().unwrap();
        if !made.status.success() {
            return write_report(&lab, "skipped");
        }
        let packages = venv.join("lib").read_dir().unwrap().next().unwrap().unwrap().path().join("site-packages");
        make(&packages.join("dependency.py"), "said = 'imported'\n", 0o644);
        let script = "import sys, dependency; print(sys.prefix, dependency.said); open(sys.argv[1])";
        let key = lab.join("checkout/.env").display().to_string();
        let full_path = venv.join("bin/python").display().to_string();
        let mut report = format!("{}\n", venv.display());
        for word in ["python", &full_path] {
            let mut program = Program { env: [].into(), ..program(&[word, "-c", script, &key]) };
            program.limits.memory_bytes_max = u64::MAX;
            let done = blocking(run(&host(&lab), &program)).unwrap();
            report.push_str(&format!("{}{}\n", done.stdout, done.stderr));
        }
        return write_report(&lab, &report);
    }
    let test = "toolchains::an_environment_in_the_checkout_runs_and_shows_nothing_beside_it";
    for report in as_each_user(test, |_| with_path(&["checkout/.venv/bin"])) {
        if report == "skipped" {
            eprintln!("skipped: this Python makes no environments");
            continue;
        }
        let (venv, rest) = report.split_once('\n').unwrap();
        assert_eq!(rest.matches(&format!("{venv} imported\n")).count(), 2, "{report}");
        assert_eq!(rest.matches("No such file").count(), 2, "{report}");
        assert!(!rest.contains("SECRET"), "{report}");
    }
}
