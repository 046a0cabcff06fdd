//! The tests of a release's files and of `packaging/install.sh`, which are in Python as the code that writes them.
//! Nothing is built for them, and no server but one on loopback is asked.

use std::path::Path;
use std::process::Command;

#[test]
fn files_of_a_release_are_as_they_are_told_and_installed_only_whole() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dist");
    let mut python = Command::new("python3");
    python.args(["-m", "unittest", "discover", "--quiet", "--pattern", "test_*.py"]).current_dir(tests);
    let output = python.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("Python 3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
