//! Guests that reach for imports, paths and networks that their world lacks or that are not granted.

use super::{PATIENCE, block_on, check, refused, stays_healthy, told};
use crate::common::guests::guest;
use crate::common::guests::lab::{Call, Ended, Lab, private_directory};
use crate::common::repository;
use expect_test::expect;
use longhaul_core::Limits;
use longhaul_core::grant::{Access, DirectoryGrant};
use longhaul_engine::LoadError;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn an_import_that_its_world_does_not_have_is_named() {
    for (name, import) in [
        ("calls-tools", "longhaul:plugin/tools@0.1.0"),
        ("calls-http", "wasi:http/"),
        ("calls-keyvalue", "longhaul:plugin/keyvalue@0.1.0"),
    ] {
        let error = refused(name, &guest(name));
        assert!(matches!(&error, LoadError::WrongWorld { reason, .. } if reason.contains(import)), "{error}");
    }
}

#[test]
fn a_tool_has_no_network_but_http() {
    check("connects", &Call::of("go", Limits::default()), expect!["answered 1001"]);
}

/// A directory that a tool is granted, beside things that it is not.
///
/// `granted` has a file, a directory and links: to the file, out of it, and to the file `secret` beside
/// it; `rest` is empty.
fn place() -> tempfile::TempDir {
    let place = private_directory();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("granted/folder/inner")).expect("made");
    fs::create_dir(at("rest")).expect("made");
    fs::write(at("secret"), "nobody reads this").expect("made");
    fs::write(at("granted/file"), "content").expect("made");
    fs::write(at("granted/folder/inner/file"), "content").expect("made");
    for (link, to) in [
        ("inside", "file".as_ref()),
        ("outside", "../secret".as_ref()),
        ("up", "..".as_ref()),
        ("absolute", at("secret").as_path()),
        ("root", Path::new("/")),
        ("twice", "outside".as_ref()),
        ("loop", "loop".as_ref()),
        ("folder/back", "../../secret".as_ref()),
    ] {
        symlink::<&Path, _>(to, at("granted").join(link)).expect("made");
    }
    place
}

fn grant(place: &Path, guest: &str, name: &str, access: Access) -> DirectoryGrant {
    DirectoryGrant { guest: guest.into(), host: place.join(name), access }
}

/// The answer to a guest for each (operation, path), with the first grant as its directory. No file may change.
fn try_paths(place: &Path, directories: &[DirectoryGrant], asked: &[(&str, &str)]) -> Vec<String> {
    let before = snapshot(place);
    let said = block_on(async {
        let lab = Lab::new();
        let plugin = lab.load("paths", &guest("paths")).await;
        let mut said = Vec::new();
        for (operation, path) in asked {
            let limits = Limits::default();
            let call =
                Call { arguments: (*path).into(), directories: directories.into(), ..Call::of(operation, limits) };
            let ended = tokio::time::timeout(PATIENCE, lab.call(&plugin, &call)).await.expect("a bounded call ends");
            said.push(format!("{operation} {}: {}", path.escape_debug(), wasi(&ended)));
        }
        said
    });
    assert_eq!(snapshot(place), before, "nothing was changed");
    said
}

/// The errors of wasi:filesystem that come up here, by their numbers.
fn wasi(ended: &Ended) -> String {
    let Ok(Ok(number)) = &ended.answer else { return told(ended) };
    match number.as_str() {
        "0" => "done",
        "1" => "access",
        "8" => "exist",
        "13" => "invalid",
        "15" => "is-directory",
        "16" => "loop",
        "21" => "no-entry",
        "25" => "not-directory",
        "26" => "not-empty",
        "32" => "not-permitted",
        "37" => "cross-device",
        "999" => "no directory at all",
        other => other,
    }
    .to_owned()
}

/// Every file and link in a directory, with content and times of change.
fn snapshot(place: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            let meta = fs::symlink_metadata(&path).expect("there");
            let content = match meta.file_type() {
                kind if kind.is_dir() => {
                    folders.push(path.clone());
                    String::new()
                }
                kind if kind.is_symlink() => fs::read_link(&path).expect("a link").display().to_string(),
                _ => fs::read_to_string(&path).expect("a text"),
            };
            found.push(format!("{} {content} {:?}", path.display(), meta.modified().expect("a time")));
        }
    }
    found.sort();
    found
}

#[test]
fn no_path_leads_out_of_a_granted_directory() {
    let place = place();
    let absolute = place.path().join("secret").display().to_string();
    let mut asked = Vec::new();
    for path in [
        "../secret",
        "folder/../../secret",
        "folder/inner/../../../secret",
        "./../secret",
        &absolute,
        "/etc/passwd",
        "//etc/passwd",
        "outside",
        "absolute",
        "twice",
        "folder/back",
        "up/secret",
        "root/etc/passwd",
        "loop",
        "..",
        "/",
        "",
        "file\0../../secret",
    ] {
        asked.extend([("read", path), ("write", path), ("Truncate", path)]);
    }
    for path in ["..", "up", "root", "/", "folder/../.."] {
        asked.push(("Directory", path));
    }
    for path in ["../secret", "outside", "absolute", "up/secret"] {
        asked.push(("?", path));
    }
    for path in ["../secret", &absolute, "up/secret"] {
        asked.extend([("link", path), ("name", path), ("unlink", path), ("@", path), ("x", path), ("d", path)]);
    }
    // A link that leads outside is not made.
    asked.extend([("symlink", "/etc/passwd"), ("symlink", absolute.as_str())]);
    let said = try_paths(place.path(), &[grant(place.path(), "/work", "granted", Access::Write)], &asked);
    let otherwise: Vec<_> = said.iter().filter(|line| !line.ends_with(": not-permitted")).map(String::as_str).collect();
    expect![[r#"
        read loop: loop
        write loop: loop
        Truncate loop: loop
        read : no-entry
        write : no-entry
        Truncate : no-entry
        read file\0../../secret: invalid
        write file\0../../secret: invalid
        Truncate file\0../../secret: invalid"#]]
    .assert_eq(&otherwise.join("\n"));
}

#[test]
fn what_was_granted_to_be_read_is_only_read() {
    let place = place();
    let asked = [
        ("read", "file"),
        ("read", "inside"),
        ("?", "file"),
        ("Directory", "folder"),
        ("write", "file"),
        ("write", "fresh"),
        ("truncate", "file"),
        ("Truncate", "file"),
        ("Mutate", "folder"),
        ("zero size", "file"),
        ("keep times", "file"),
        ("link", "file"),
        ("name", "file"),
        ("symlink", "file"),
        ("unlink", "file"),
        ("d", "fresh"),
        ("x", "folder/inner"),
    ];
    let read = || grant(place.path(), "/work", "granted", Access::Read);
    let alone = try_paths(place.path(), &[read()], &asked);
    expect![[r#"
        read file: done
        read inside: done
        ? file: done
        Directory folder: done
        write file: not-permitted
        write fresh: not-permitted
        truncate file: not-permitted
        Truncate file: not-permitted
        Mutate folder: done
        zero size file: not-permitted
        keep times file: not-permitted
        link file: not-permitted
        name file: not-permitted
        symlink file: not-permitted
        unlink file: not-permitted
        d fresh: not-permitted
        x folder/inner: not-permitted"#]]
    .assert_eq(&alone.join("\n"));
    // A second directory that may be written is no way to change the first.
    let both = [read(), grant(place.path(), "/rest", "rest", Access::Write)];
    assert_eq!(try_paths(place.path(), &both, &asked), alone);
}

#[test]
fn a_tool_without_a_grant_sees_no_directory() {
    let place = place();
    for told in try_paths(place.path(), &[], &[("read", "file"), ("read", "/etc/passwd"), ("write", "file")]) {
        assert!(told.ends_with(": no directory at all"), "{told}");
    }
}

#[test]
fn a_granted_directory_that_is_gone_ends_the_call_and_not_the_host() {
    let place = place();
    let call = Call {
        directories: vec![grant(place.path(), "/work", "nowhere", Access::Read)],
        ..Call::of("read", Limits::default())
    };
    block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &guest("healthy")).await;
        let told = told(&lab.call(&healthy, &call).await);
        assert!(told.contains("nowhere`: No such file or directory"), "{told}");
        stays_healthy(&lab, &healthy).await;
    });
}

#[test]
fn the_files_tool_refuses_every_way_out_of_its_directory() {
    let Some(bytes) = shipped("files") else { return };
    let place = place();
    let before = snapshot(place.path());
    block_on(async {
        let lab = Lab::new();
        let plugin = lab.load("files", &bytes).await;
        let absolute = place.path().join("secret").display().to_string();
        for path in
            ["../secret", "folder/../../secret", &absolute, "outside", "absolute", "twice", "folder/back", "up/secret"]
        {
            for function in ["read", "write", "edit", "list", "search", "multi_edit", "patch", "delete", "move"] {
                let arguments = match function {
                    "multi_edit" => {
                        serde_json::json!({ "path": path, "edits": [{ "old": "nobody", "new": "anybody" }] })
                    }
                    "patch" => serde_json::json!({
                        "patch": format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-nobody\n+anybody\n")
                    }),
                    "move" => serde_json::json!({ "from": path, "to": "taken.txt" }),
                    "write" => serde_json::json!({ "path": path, "content": "changed" }),
                    "edit" => serde_json::json!({ "path": path, "old": "nobody", "new": "anybody" }),
                    "search" => serde_json::json!({ "path": path, "query": "nobody" }),
                    _ => serde_json::json!({ "path": path }),
                };
                let call = Call {
                    arguments: arguments.to_string(),
                    directories: vec![grant(place.path(), "/work", "granted", Access::Write)],
                    ..Call::of(function, Limits::default())
                };
                let ended = lab.call(&plugin, &call).await;
                assert!(matches!(ended.answer, Ok(Err(_))), "{function} {path}: {}", told(&ended));
            }
        }
    });
    assert_eq!(snapshot(place.path()), before);
}

/// A shipped plugin, where `cargo xtask plugins` was run.
fn shipped(name: &str) -> Option<Vec<u8>> {
    let path = repository().join("target/plugins").join(name).with_extension("wasm");
    let bytes = fs::read(&path).ok();
    if bytes.is_none() {
        eprintln!("skipped: there is no `{}`; run: cargo xtask plugins", path.display());
    }
    bytes
}
