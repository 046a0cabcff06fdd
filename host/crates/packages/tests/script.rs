//! The tests of the script that runs pip and lays wheels out, which are in Python as it is. They ask an index that is a
//! folder, and need no network.

use std::path::Path;
use std::process::Command;

#[test]
fn wheels_are_laid_out_whole_and_within_limits_or_refused_in_one_line() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wheels");
    let mut python = Command::new("python3");
    python.args(["-m", "unittest", "discover", "--quiet", "--pattern", "test_*.py"]).current_dir(tests);
    let output = python.env("PYTHONDONTWRITEBYTECODE", "1").output().expect("Python 3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
