//! Standard output and files that are open when code ends: all of what it wrote is seen.

use super::{expect, folder, python, run, seeing};
use longhaul_core::grant::Access;
use std::fs;

#[tokio::test]
async fn what_is_printed_in_one_go_is_whole() {
    // More than the 64 KiB that the host takes at a time.
    for source in [
        "print('x' * 300_000, end='')",
        "import sys; sys.stdout.buffer.write(b'x' * 300_000)",
        "import array, sys; sys.stdout.buffer.write(array.array('i', [0x78787878]) * 75_000)",
    ] {
        let report = run(python(source)).await;
        assert_eq!((report.stdout.len(), report.truncated, report.exit_code), (300_000, false, Some(0)), "{source}");
    }
    let report = run(python("import sys; sys.stderr.close(); sys.stdout.buffer.write(b'\\xff'); 1 / 0"));
    let report = report.await;
    expect(&report, "\u{fffd}", Some(1), None);
    assert!(report.stderr.ends_with("ZeroDivisionError: division by zero\n"), "{report:#?}");
}

#[tokio::test]
async fn what_a_source_leaves_open_is_written() {
    let (_directory, inside) = folder();
    // The function holds on to the file, as most sources have one that does.
    let source = "import io, sys
file = open('/data/new', 'w')
def name(): return file.name
class Last:
    def __del__(self): print('and let go')
last = Last()
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8', write_through=False)
file.write(name())
print('held back')";
    let report = run(seeing(python(source), &inside, Access::Write)).await;
    expect(&report, "held back\nand let go\n", Some(0), None);
    assert_eq!(fs::read_to_string(inside.join("new")).expect("it is there"), "/data/new");
}

#[tokio::test]
async fn a_source_that_spoils_its_own_names_and_streams_still_ends() {
    for (source, stdout) in [
        ("import sys; print(1); del sys.stdout, sys.stderr", "1\n"),
        ("import sys; print(1); sys.stdout = sys.stderr = 7", "1\n"),
        ("print(1); globals().clear()", "1\n"),
        (
            "class Odd:\n __hash__ = object.__hash__\n def __eq__(self, other): 1 / 0\nglobals()[Odd()] = print(1)",
            "1\n",
        ),
        ("class Odd:\n def flush(self): raise SystemExit(3)\nimport sys; print(1); sys.stdout = Odd()", "1\n"),
    ] {
        expect(&run(python(source)).await, stdout, Some(0), None);
    }
}
