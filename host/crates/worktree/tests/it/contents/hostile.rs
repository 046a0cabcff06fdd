//! Stored content that nobody's tree has.

use super::{Stored, names, rebuild};
use crate::repo::{Repo, read};
use longhaul_core::Digest;
use longhaul_worktree::TreeError;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

/// Stores a manifest with these entries.
fn store(stored: &mut Stored, entries: &Value) -> Digest {
    let text = json!({ "version": 1, "entries": entries }).to_string().into_bytes();
    let digest = Digest::of(&text);
    stored.insert(digest, text);
    digest
}

/// It is refused as what is stored, and nothing is written.
#[track_caller]
fn check(repo: &Repo, stored: &Stored, root: &Digest, why: &str) {
    let project = repo.project();
    // A failed call may leave a temporary directory.
    let lasting =
        || -> Vec<String> { names(repo.dir.path()).into_iter().filter(|name| !name.starts_with("r-9.tmp-")).collect() };
    let before = lasting();
    let there = repo.dir.path().join("r-9");
    let error = rebuild(&project, &there, &project.head().unwrap(), root, stored).unwrap_err();
    assert!(matches!(error, TreeError::Stored { .. }), "{error}");
    assert!(!error.is_retryable() && !error.is_of_the_work());
    let text = error.to_string();
    assert!(text.contains(why) && !text.contains('\n'), "`{text}` does not say `{why}`");
    assert_eq!(lasting(), before);
}

#[track_caller]
fn check_entries(entries: &Value, why: &str) {
    let repo = Repo::with(&[("a.txt", "one")]);
    let mut stored = Stored::from([(Digest::of(b"x"), b"x".to_vec())]);
    let root = store(&mut stored, entries);
    check(&repo, &stored, &root, why);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let file = json!({ "file": { "digest": Digest::of(b"x").to_string(), "bytes": 1, "executable": false } });
    let no_name = "which no file may have";
    for name in ["", ".", "..", "../x", "/etc/x", "a/b", "a/", ".git", ".GIT", "a\0b"] {
        check_entries(&json!([[name, file]]), no_name);
        check_entries(&json!([[name, "gone"]]), no_name);
        check_entries(&json!([[name, { "link": { "target": "x" } }]]), no_name);
    }
    check_entries(&json!([["x".repeat(256), file]]), no_name);
    // `../x`, spelled otherwise.
    check_entries(&json!([[{ "base64": "Li4veA==" }, file]]), no_name);
    check_entries(&json!([[{ "base64": "%" }, file]]), "is no manifest");
    check_entries(&json!([["x", file], ["x", "gone"]]), "has `x` twice or out of order");
    check_entries(&json!([["y", "gone"], ["x", file]]), "has `x` twice or out of order");
    check_entries(&json!([["x", file], [{ "base64": "eA==" }, file]]), "has `x` twice or out of order");
}

#[test]
fn other_content_than_its_manifest_says_is_refused() {
    let digest = Digest::of(b"x").to_string();
    let file = |bytes: u64| json!([["x", { "file": { "digest": digest, "bytes": bytes, "executable": true } }]]);
    check_entries(&file(2), "is not the content");
    check_entries(&file((64 << 20) + 1), "bytes of a file, and 67108864 are the most");
    check_entries(
        &json!([["x", { "file": { "digest": digest, "bytes": 1, "executable": true, "setuid": true } }]]),
        "is no manifest",
    );
    check_entries(&json!([["x", { "device": {} }]]), "is no manifest");
    check_entries(&json!([["x", { "link": { "target": "" } }]]), "with a target that no link may have");
    check_entries(&json!([["x", { "link": { "target": "a\0" } }]]), "with a target that no link may have");

    let repo = Repo::with(&[("a.txt", "one")]);
    let root = Digest::of(b"expected");
    for text in ["other", ""] {
        check(&repo, &Stored::from([(root, text.into())]), &root, "should have the digest");
    }
    for (text, why) in
        [("expected", "is no manifest"), (r#"{"version":2,"entries":[]}"#, "has format 2, and this version reads 1")]
    {
        let root = Digest::of(text.as_bytes());
        check(&repo, &Stored::from([(root, text.into())]), &root, why);
    }
    let mut stored = Stored::new();
    let root = store(&mut stored, &file(1));
    stored.insert(Digest::of(b"x"), b"y".to_vec());
    check(&repo, &stored, &root, "is not the content");
}

#[test]
fn directories_without_an_end_are_refused() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let mut stored = Stored::new();
    let mut deep = store(&mut stored, &json!([]));
    for _ in 0..200 {
        deep = store(&mut stored, &json!([["d", { "directory": { "manifest": deep.to_string() } }]]));
    }
    check(&repo, &stored, &deep, "directories within each other");

    // Few bytes, and a thousand million directories.
    let mut wide = store(&mut stored, &json!([]));
    for _ in 0..3 {
        let entry = json!({ "directory": { "manifest": wide.to_string() } });
        let entries: Vec<Value> = (0..1_000).map(|number| json!([format!("{number:03}"), entry])).collect();
        wide = store(&mut stored, &Value::from(entries));
    }
    check(&repo, &stored, &wide, "entries, and 600000 are the most");
}

#[test]
fn paths_that_a_small_manifest_makes_long_are_refused() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let mut stored = Stored::new();
    // Some 15 000 bytes above each of 20 000 names.
    let names: Vec<Value> = (0..20_000).map(|number| json!([format!("{number:05}"), "gone"])).collect();
    let mut deep = store(&mut stored, &Value::from(names));
    for _ in 0..60 {
        deep = store(&mut stored, &json!([["d".repeat(255), { "directory": { "manifest": deep.to_string() } }]]));
    }
    check(&repo, &stored, &deep, "bytes of paths, and 268435456 are the most");
}

#[test]
fn nothing_is_written_through_a_link() {
    let repo = Repo::with(&[("a.txt", "one")]);
    let outside = repo.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("x"), "of the user").unwrap();
    for link in ["out", "gone"] {
        symlink(&outside, repo.root().join(link)).unwrap();
    }
    symlink(outside.join("x"), repo.root().join("file")).unwrap();
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "links"]);

    let mut stored = Stored::from([(Digest::of(b"x"), b"x".to_vec())]);
    let file = json!({ "file": { "digest": Digest::of(b"x").to_string(), "bytes": 1, "executable": false } });
    let below = store(&mut stored, &json!([["x", file]]));
    let removed = store(&mut stored, &json!([["x", "gone"]]));
    let root = store(
        &mut stored,
        &json!([
            ["file", file],
            ["gone", { "directory": { "manifest": removed.to_string() } }],
            ["out", { "directory": { "manifest": below.to_string() } }],
        ]),
    );
    let project = repo.project();
    let there = repo.dir.path().join("r-9");
    rebuild(&project, &there, &project.head().unwrap(), &root, &stored).unwrap();
    assert_eq!((read(&there, "out/x"), read(&there, "file")), ("x".to_owned(), "x".to_owned()));
    assert!(std::fs::symlink_metadata(there.join("out")).unwrap().is_dir());
    assert!(std::fs::symlink_metadata(there.join("gone")).unwrap().is_dir());
    assert_eq!((names(&outside), read(&outside, "x")), (vec!["x".to_owned()], "of the user".to_owned()));
}
