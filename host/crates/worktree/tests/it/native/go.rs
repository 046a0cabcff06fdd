//! Checks of Go: they start from a compiled standard library, which no check changes, and use a cache of modules.

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

/// A module with a version of its own, in a module cache that go filled itself, and one that needs it.
fn module_cache(dir: &Path) -> Vec<(&'static str, String)> {
    let proxy = dir.join("proxy/example.com/dep/@v");
    std::fs::create_dir_all(&proxy).unwrap();
    let module = "module example.com/dep\n\ngo 1.18\n";
    std::fs::write(proxy.join("list"), "v1.2.3\n").unwrap();
    std::fs::write(proxy.join("v1.2.3.info"), r#"{"Version":"v1.2.3","Time":"2024-01-01T00:00:00Z"}"#).unwrap();
    std::fs::write(proxy.join("v1.2.3.mod"), module).unwrap();
    let code = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as file:\n    for name, text in \
                zip(sys.argv[2::2], sys.argv[3::2]): file.writestr('example.com/dep@v1.2.3/' + name, text)\n";
    let dep = "package dep\n\nfunc Twice(a int) int { return 2 * a }\n";
    let zip = proxy.join("v1.2.3.zip");
    let words = [std::ffi::OsStr::new("-c"), code.as_ref(), zip.as_os_str()];
    let words = words.into_iter().chain(["go.mod", module, "dep.go", dep].map(std::ffi::OsStr::new));
    assert!(std::process::Command::new("python3").args(words).status().unwrap().success());
    let files = [
        ("go.mod", "module example.com/demo\n\ngo 1.18\n\nrequire example.com/dep v1.2.3\n"),
        ("demo.go", "package demo\n\nimport \"example.com/dep\"\n\nfunc Four() int { return dep.Twice(2) }\n"),
        (
            "demo_test.go",
            "package demo\n\nimport \"testing\"\n\nfunc TestFour(t *testing.T) {\n\tif got := Four(); got != 4 {\n\
             \t\tt.Error(got)\n\t}\n}\n",
        ),
    ];
    let demo = dir.join("demo");
    std::fs::create_dir(&demo).unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(demo.join(name), text).unwrap());
    let filled = std::process::Command::new("go")
        .args(["mod", "tidy"])
        .current_dir(&demo)
        .env("GOPROXY", format!("file://{}", dir.join("proxy").display()))
        .env("GOMODCACHE", dir.join("cache"))
        .envs([("GOSUMDB", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "-modcacherw")])
        .status();
    assert!(filled.unwrap().success());
    let names = ["go.mod", "go.sum", "demo.go", "demo_test.go"];
    names.iter().map(|name| (*name, std::fs::read_to_string(demo.join(name)).unwrap())).collect()
}

/// The check has its defaults, except the path of the module cache.
#[tokio::test]
async fn go_test_runs_in_the_sandbox_with_a_module_of_the_cache() {
    if !has_go() {
        eprintln!("skipped: there is no go");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let files = module_cache(dir.path());
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, &**text)).collect();
    let repo = Repo::with(&files);
    let cache = dir.path().join("cache").display().to_string();
    for words in [&["go", "build", "./..."][..], &["go", "vet", "./..."], &["go", "test", "./..."]] {
        let mut check = NativeCheck::of_argv(words.iter().map(|word| (*word).to_owned()).collect());
        check.env.insert("GOMODCACHE".to_owned(), cache.clone());
        assert!(!run(&repo, &check).await.unwrap().report.passed, "a variable shows nothing");
        check.read = vec![cache.clone().into()];
        let done = run(&repo, &check).await.unwrap();
        assert!(done.report.passed, "{words:?}: {done:?}");
        let said = &done.report.stderr;
        assert!(words[1] != "test" || said.contains("1 test passed by name, where 5 that must fail did"), "{done:?}");
        check.env.remove("GOMODCACHE");
        check.read.clear();
        assert!(!run(&repo, &check).await.unwrap().report.passed, "the dependency comes from nowhere else");
    }
    let mut check = shell("touch \"$GOMODCACHE/new\"");
    check.env.insert("GOMODCACHE".to_owned(), cache.clone());
    check.read = vec![cache.into()];
    assert!(!run(&repo, &check).await.unwrap().report.passed, "the cache is read-only");
}
