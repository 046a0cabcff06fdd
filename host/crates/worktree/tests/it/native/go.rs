//! Checks of Go start from a compiled standard library, which no check changes.

use super::cheats::has_go;
use super::{host, run, shared_cache, shell};
use crate::repo::Repo;
use longhaul_core::Digest;
use longhaul_sandbox::{Level, SandboxHost};
use longhaul_worktree::{NativeCheck, pins, run_native};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Builds the module, and prints how often `net/http` and the module's own package were compiled.
const BUILDS: &str = "go build -x ./... > ../tmp/log 2>&1 || cat ../tmp/log
grep -c ' -p net/http ' ../tmp/log
grep -c ' -p example.com/demo ' ../tmp/log
";

/// The files below a directory, with the digests of their contents.
fn digests(dir: &Path) -> BTreeMap<PathBuf, Digest> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(digests(&entry.path()));
        } else {
            found.insert(entry.path(), Digest::of(&std::fs::read(entry.path()).unwrap()));
        }
    }
    found
}

#[tokio::test]
async fn a_check_of_go_compiles_no_standard_library_whatever_the_check_before_did_to_its_own() {
    if !has_go() {
        return;
    }
    let code = "package demo\n\nimport \"net/http\"\n\nvar Client http.Client\n";
    let repo = Repo::with(&[("go.mod", "module example.com/demo\n\ngo 1.18\n"), ("demo.go", code)]);
    let first = run(&repo, &shell(BUILDS)).await.unwrap();
    assert_eq!(first.report.stdout, "0\n1\n", "{first:?}");
    let library = shared_cache().join("go-library");
    let before = digests(&library);
    assert!(before.len() > 100, "{}", before.len());
    let poison = format!(
        "cd ~/.cache/go-build && for entry in */*-d; do echo poison > $entry; done; echo $?
ls '{}' 2> /dev/null",
        library.display()
    );
    let poisoned = run(&repo, &shell(&poison)).await.unwrap();
    assert!(poisoned.report.stdout.starts_with("0\n"), "{poisoned:?}");
    let is_confined = poisoned.sandbox > Level::None;
    assert!(!is_confined || poisoned.report.stdout == "0\n", "a check sees no library: {poisoned:?}");
    let after = run(&repo, &shell(BUILDS)).await.unwrap();
    assert_eq!(after.report.stdout, "0\n1\n", "{after:?}");
    assert!(digests(&library).iter().all(|(path, digest)| before.get(path).is_none_or(|was| was == digest)));
}

/// Its package imports nothing, so that nothing is compiled but itself.
#[tokio::test]
async fn a_check_of_go_runs_where_no_library_can_be_kept() {
    if !has_go() {
        return;
    }
    let repo = Repo::with(&[("go.mod", "module example.com/demo\n\ngo 1.18\n"), ("demo.go", "package demo\n")]);
    let file = repo.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let check = NativeCheck::of_argv(["go", "build", "./..."].map(str::to_owned).to_vec());
    let project = repo.project();
    let head = project.head().unwrap();
    let pins = pins(&project, &head, "test", &check).unwrap();
    for cache in [None, Some(file)] {
        let host = SandboxHost { cache, ..host(&repo) };
        let done = run_native(&host, &project, &repo.checkout(), &head, "test", &check, &pins).await.unwrap();
        assert!(done.report.passed, "{done:?}");
    }
}
