//! Packages for code: fetched once, by digest, and seen by the code alone.
//!
//! The index of most tests is a folder, to which the variables of pip point, so that no network is asked.

use crate::common::lab::Lab;
use crate::common::repository;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Writes a wheel, always of the same bytes.
const WHEEL: &str = "import sys, zipfile
folder, version, source = sys.argv[1:]
info = f'words_of_a_test-{version}.dist-info'
with zipfile.ZipFile(f'{folder}/words_of_a_test-{version}-py3-none-any.whl', 'w') as archive:
    for name, text in (
        ('words_of_a_test.py', source),
        (f'{info}/METADATA', f'Metadata-Version: 2.1\\nName: words-of-a-test\\nVersion: {version}\\n'),
        (f'{info}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n'),
        (f'{info}/RECORD', ''),
    ):
        archive.writestr(zipfile.ZipInfo(name), text)
";

fn write_wheel(index: &Path, version: &str, source: &str) {
    let mut python = Command::new("python3");
    let done = python.args(["-c", WHEEL]).arg(index).args([version, source]).status().expect("Python 3 starts");
    assert!(done.success());
}

#[test]
fn a_package_is_fetched_once_and_is_what_its_lock_says() {
    let lab = Lab::empty();
    let (index, none) = (lab.path("index"), lab.path("none"));
    for folder in [&index, &none] {
        fs::create_dir(folder).expect("ours");
    }
    write_wheel(&index, "1.0", "def greet(): return 'hello'");
    let (job, lock) = (lab.path("job.py"), lab.path("lock.txt"));
    fs::write(
        &job,
        "import words_of_a_test as w, importlib.metadata as m\nprint(w.greet(), m.version('words-of-a-test'))",
    )
    .expect("ours");
    let (job, locked) = (job.display().to_string(), lock.display().to_string());
    let exec = |index: &Path, rest: &[&str]| {
        let index = index.display().to_string();
        let environment = [("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", index.as_str()), ("PIP_CONFIG_FILE", "/dev/null")];
        lab.start_with(&[&["exec", job.as_str()], rest].concat(), &environment).wait()
    };
    let with = ["--with", "words-of-a-test == 1.0", "--lock", locked.as_str()];
    assert_eq!(exec(&index, &with).expect(0).stdout, "hello 1.0\n");
    let text = fs::read_to_string(&lock).expect("it was written");
    assert!(text.contains("# wants: words-of-a-test==1.0\nwords-of-a-test==1.0 --hash=sha256:"), "{text}");
    // What the cache has needs no index, with the lock and without.
    for with in [&with[..], &with[..2]] {
        assert_eq!(exec(&none, with).expect(0).stdout, "hello 1.0\n");
    }
    // Without the option the code sees none of it.
    assert!(exec(&none, &[]).expect(1).stderr.contains("No module named 'words_of_a_test'"));

    let other = ["--with", "words-of-a-test==2.0", "--lock", locked.as_str()];
    let said = exec(&index, &other).expect(125).stderr;
    assert!(said.contains("is of other packages; write it anew with --upgrade"), "{said}");
    let digest = text.trim_end().rsplit_once(':').expect("it ends with a digest").1;
    fs::write(&lock, text.replace(digest, &"0".repeat(64))).expect("ours");
    let said = exec(&index, &with).expect(125).stderr;
    assert!(said.contains("is not what the lock says"), "{said}");
}

#[test]
fn what_names_no_package_of_an_index_is_refused() {
    let lab = Lab::empty();
    fs::write(lab.path("job.js"), "1").expect("ours");
    let job = lab.path("job.js").display().to_string();
    for (with, code, expected) in [
        ("./a.whl", 2, "names no package of an index"),
        ("-r /etc/passwd", 2, "names no package of an index"),
        ("tabulate", 125, "--with gives packages to Python"),
    ] {
        let ran = lab.run(&["exec", &job, &format!("--with={with}")]).expect(code);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    fs::write(lab.path("job.py"), "1").expect("ours");
    let job = lab.path("job.py").display().to_string();
    let ran = lab.run(&["exec", &job, "--runtime", "native", "--with", "tabulate"]).expect(125);
    assert!(ran.stderr.contains("native code has those of --venv DIR"), "{}", ran.stderr);
}

/// Packages, each with a program and the last line that it prints, or with a part of the reason why they are refused.
const TRIED: &str = include_str!("packages/tried.tsv");

/// The number of packages that are tried where `LONGHAUL_PACKAGES` names no other.
const TRIED_USUALLY: usize = 2;

/// The index is the one that pip is set up for. All are tried with
/// `LONGHAUL_PACKAGES=100 cargo nextest run -p longhaul --test execution packages`.
#[test]
fn packages_of_the_index_do_what_the_book_says() {
    let lab = Lab::empty();
    let job = lab.path("job.py");
    let count = std::env::var("LONGHAUL_PACKAGES").map_or(TRIED_USUALLY, |count| count.parse().expect("a number"));
    for line in TRIED.lines().take(count) {
        let [package, program, expected] = line.split('\t').collect::<Vec<_>>().try_into().expect("three columns");
        fs::write(&job, program).expect("ours");
        let ran = lab.run(&["exec", &job.display().to_string(), "--with", package]);
        match expected.strip_prefix("refused: ") {
            Some(reason) => {
                let ran = ran.expect(125);
                assert!(ran.stderr.contains(reason), "{package}: {}", ran.said());
            }
            None => assert_eq!(ran.expect(0).stdout.lines().next_back(), Some(expected), "{package}"),
        }
    }
}

#[test]
fn the_book_has_every_package_that_was_tried() {
    let page = repository().join("docs/book/src/guides/python-library.md");
    let page = fs::read_to_string(page).expect("the page").to_lowercase();
    for package in TRIED.lines().filter_map(|line| line.split(['=', '\t']).next()) {
        assert!(page.contains(&package.to_lowercase()), "{package}");
    }
    assert!(TRIED.lines().count() > 30);
}
