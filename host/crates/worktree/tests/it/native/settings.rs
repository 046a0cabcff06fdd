//! Checks as they are written, and those that cannot be run.

use super::{host, run, shell};
use crate::repo::Repo;
use expect_test::expect;
use longhaul_worktree::{NativeCheck, NativeError, pins, run_native};

#[tokio::test]
async fn a_check_that_cannot_be_run_is_an_error_that_says_what_to_do() {
    let repo = Repo::with(&[]);
    let project = repo.project();
    let base = project.head().unwrap();
    let told = |error: NativeError| error.to_string();
    let absent = NativeCheck::of_argv(vec!["no-such-program-here".to_owned()]);
    expect!["check `test` cannot find the program `no-such-program-here`; install it, or give its full path"]
        .assert_eq(&told(run(&repo, &absent).await.unwrap_err()));
    let refused = |check: &NativeCheck| told(pins(&project, &base, "test", check).unwrap_err());
    expect![[r#"check `test` has no program; write for example: argv = ["cargo", "test"]"#]]
        .assert_eq(&refused(&NativeCheck::of_argv(vec![])));
    let mut lazy = shell("true");
    lazy.wall_ms_max = 0;
    expect!["check `test` may use no time or no memory; remove the limit or set it above 0"].assert_eq(&refused(&lazy));
    expect!["check `test` has a word or variable that no program can be given; remove NUL, and `=` from names"]
        .assert_eq(&refused(&shell("a\0b")));
    let mut host = host(&repo);
    host.program = "/bin/true".into();
    let check = shell("true");
    let pins = pins(&project, &base, "test", &check).unwrap();
    let error = run_native(&host, &project, &repo.checkout(), &base, "test", &check, &pins).await.unwrap_err();
    expect!["check `test` could not be run: the child said nothing; this is the host's fault and not the program's"]
        .assert_eq(&told(error));
}

#[test]
fn a_check_is_written_as_a_list_or_a_table() {
    let read = |text: &str| serde_json::from_str::<NativeCheck>(text);
    assert_eq!(read(r#"["cargo", "test"]"#).unwrap(), NativeCheck::of_argv(vec!["cargo".into(), "test".into()]));
    let table = read(r#"{"argv": ["pytest"], "files": ["tests/**"], "wall_ms_max": 5}"#).unwrap();
    assert_eq!((table.files[0].as_str(), table.wall_ms_max, table.processes_max), ("tests/**", 5, 256));
    expect!["unknown field `arg`, expected one of `argv`, `files`, `evidence`, `twins`, `report`, `tests_min`, `unpinned`, `env`, `read`, `wall_ms_max`, `memory_bytes_max`, `output_bytes_max`, `processes_max`, `disk_bytes_max` at line 1 column 6"]
        .assert_eq(&read(r#"{"arg": ["pytest"]}"#).unwrap_err().to_string());
    expect![[r#"invalid type: integer `3`, expected a list of words, such as ["cargo", "test"], or a table with `argv` at line 1 column 1"#]].assert_eq(&read("3").unwrap_err().to_string());
}
