//! Backups: made while a run goes on, restored with nothing done twice, and refused where anything was changed.

use crate::common::lab::Lab;
use crate::common::{self, DOER_CONFIG};
use crate::{TWO, list, passing};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

#[test]
fn a_backup_that_is_made_while_a_run_goes_on_is_whole() {
    let lab = Lab::new(DOER_CONFIG, TWO);
    lab.fake.model_takes(Duration::from_millis(200));
    lab.set_own_secret("token", "hush-hush");
    let mut owner = lab.start(&["run"]);
    owner.wait_for("work on one");
    let file = lab.path("kept.backup");
    let file = file.to_str().expect("text");
    let made = lab.json(&["backup", file]);
    assert!(made["rows"].as_u64().is_some_and(|rows| rows > 0), "{made}");
    assert!(owner.is_running(), "nothing was stopped for it");
    assert!(list(&made, "left_out")[0].as_str().is_some_and(|left| left.contains("is worked on")), "{made}");
    assert_eq!(fs::metadata(file).expect("made").permissions().mode() & 0o777, 0o600);
    common::refused(&lab.run(&["backup", file]), &["is there already"]);
    owner.wait().expect(0);

    let home = lab.path("other-home");
    let key = made["signer"].as_str().expect("signed").to_owned();
    let unknown = lab.run_at(&home, &["restore", file]);
    common::refused(&unknown, &["cannot be restored", "which is unknown here", &format!("add --signer {key}")]);
    let restored = lab.run_at(&home, &["--json", "restore", file, "--signer", &key]).expect(0);
    let restored: Value = serde_json::from_str(&restored.stdout).expect("JSON");
    assert_eq!(restored["manifest"]["rows"], made["rows"]);
    assert!(!home.join("secrets").exists(), "nobody asked for secrets");
    assert_eq!(fs::metadata(&home).expect("made").permissions().mode() & 0o777, 0o700);
    let runs = lab.run_at(&home, &["runs"]).expect(0).stdout;
    assert!(runs.contains("broken off"), "as after a kill: {runs}");
    lab.run_at(&home, &["doctor", "--store"]).expect(0);
    common::refused(&lab.run_at(&home, &["restore", file]), &["is not empty"]);
}

#[test]
fn a_run_goes_on_where_a_backup_was_restored_and_nothing_is_done_twice() {
    let lab = Lab::new(DOER_CONFIG, TWO);
    lab.set_own_secret("token", "hush-hush");
    lab.run(&["run", "--sessions", "1"]).expect(4);
    let before = lab.fake.posts().len();
    let file = lab.path("kept.backup");
    let made = lab.json(&["backup", "--with-secrets", file.to_str().expect("text")]);
    fs::rename(lab.home(), lab.path("lost")).expect("ours");
    let signer = made["signer"].as_str().expect("signed");
    let told = lab.run(&["restore", file.to_str().expect("text"), "--signer", signer]).expect(0);
    assert!(told.stdout.contains("all as they were written"), "{}", told.said());
    let secret = lab.home().join("secrets/token");
    assert_eq!(fs::metadata(&secret).expect("restored").permissions().mode() & 0o777, 0o600);
    lab.run(&["resume"]).expect(0);
    let posts = lab.fake.posts();
    assert!(posts.len() > before);
    let mut keys: Vec<_> = posts.iter().map(|told| &told.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), posts.len(), "each effect once");
}

/// Changes a copy of a backup, and tries to restore it.
#[track_caller]
fn refused_after(lab: &Lab, file: &Path, change: impl FnOnce(&mut Vec<u8>), words: &[&str]) {
    let mut bytes = fs::read(file).expect("made");
    change(&mut bytes);
    let changed = lab.path("changed.backup");
    fs::write(&changed, bytes).expect("ours");
    let home = lab.path("never");
    common::refused(&lab.run_at(&home, &["restore", changed.to_str().expect("text")]), words);
    assert!(!home.exists(), "nothing is left");
    let left = fs::read_dir(lab.path("")).expect("ours").flatten();
    let left: Vec<_> = left.filter(|entry| entry.file_name().to_string_lossy().contains("restore-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_backup_that_was_damaged_or_cut_off_is_refused_and_leaves_nothing() {
    let lab = passing();
    lab.run(&["run"]).expect(0);
    let file = lab.path("kept.backup");
    lab.run(&["backup", file.to_str().expect("text")]).expect(0);
    let cannot = "cannot be restored";
    refused_after(&lab, &file, |bytes| bytes.truncate(bytes.len() / 2), &[cannot]);
    refused_after(&lab, &file, |bytes| bytes.truncate(bytes.len() - 200), &[cannot]);
    for part in 1..8 {
        let flip = |bytes: &mut Vec<u8>| {
            let at = bytes.len() * part / 8;
            bytes[at] ^= 0x55;
        };
        refused_after(&lab, &file, flip, &[cannot]);
    }
    refused_after(&lab, &file, Vec::clear, &[cannot]);
    refused_after(&lab, &file, |bytes| *bytes = b"not a backup at all".to_vec(), &[cannot]);
    let traps = [("../out", "no file of a data directory"), ("plugins/../../out", "no file of a data directory")];
    for (path, words) in traps {
        refused_after(&lab, &file, |bytes| *bytes = archive_with(path, b'0'), &[cannot, words]);
    }
    // Through a link, the state would be read and written where it leads.
    for path in ["state.redb", "server.toml", "trees/r-1"] {
        refused_after(&lab, &file, |bytes| *bytes = archive_with(path, b'2'), &[cannot, "is a link"]);
    }
}

/// An archive with other files in it: `change` is handed each with its path, and gives what is to be there.
fn repacked(file: &Path, change: impl Fn(&str, Vec<u8>) -> Option<Vec<u8>>) -> Vec<u8> {
    let decoder = zstd::Decoder::new(fs::File::open(file).expect("made")).expect("zstd");
    let (mut archive, mut out) = (tar::Archive::new(decoder), tar::Builder::new(Vec::new()));
    for entry in archive.entries().expect("tar") {
        let mut entry = entry.expect("tar");
        let (mut header, path) = (entry.header().clone(), entry.path().expect("a path").into_owned());
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).expect("read");
        let Some(bytes) = change(path.to_str().expect("text"), bytes) else { continue };
        header.set_size(bytes.len() as u64);
        out.append_data(&mut header, path, &bytes[..]).expect("in memory");
    }
    zstd::encode_all(&out.into_inner().expect("in memory")[..], 1).expect("in memory")
}

/// A restored backup used to bring commands and tokens of its writer, whose identity nothing showed.
#[test]
fn a_backup_brings_no_commands_and_no_tokens_and_no_changed_byte() {
    let lab = passing();
    fs::create_dir_all(lab.home()).expect("ours");
    fs::set_permissions(lab.home(), fs::Permissions::from_mode(0o700)).expect("ours");
    fs::write(lab.home().join("server.toml"), "[notify]\ncommand = [\"touch\", \"/nowhere\"]\n").expect("ours");
    lab.run(&["token", "add", "author", "--scope", "admin"]).expect(0);
    let file = lab.path("kept.backup");
    let made = lab.json(&["backup", file.to_str().expect("text")]);
    let key = made["signer"].as_str().expect("signed").to_owned();
    let restore = |home: &str, file: &Path, flags: &[&str]| {
        lab.run_at(&lab.path(home), &[&["restore", file.to_str().expect("text")], flags].concat())
    };
    // Each change with its digest in the manifest, which the writer of an archive can also change.
    let evil = b"[notify]\ncommand = [\"touch\", \"/evil\"]\n".to_vec();
    let with_evil = |path: &str, bytes: Vec<u8>, signed: bool| match path {
        "server.toml" => Some(evil.clone()),
        "manifest.json" => {
            let mut manifest: Value = serde_json::from_slice(&bytes).expect("JSON");
            if !signed {
                manifest.as_object_mut().expect("an object").remove("signer");
            }
            for entry in manifest["files"].as_array_mut().expect("a list").iter_mut() {
                if entry["path"] == "server.toml" {
                    entry["bytes"] = json!(evil.len());
                    entry["sha256"] = json!(longhaul_core::Digest::of(&evil).to_string());
                }
            }
            Some(serde_json::to_vec(&manifest).expect("JSON"))
        }
        "manifest.json.minisig" if !signed => None,
        _ => Some(bytes),
    };
    let changed = lab.path("changed.backup");
    fs::write(&changed, repacked(&file, |path, bytes| with_evil(path, bytes, true))).expect("ours");
    common::refused(&restore("a", &changed, &["--signer", &key]), &["not what its signer signed"]);
    fs::write(&changed, repacked(&file, |path, bytes| with_evil(path, bytes, false))).expect("ours");
    common::refused(&restore("a", &changed, &["--signer", &key]), &["is unsigned, and not signed by"]);
    common::refused(&restore("a", &changed, &[]), &["is unsigned", "add --unsigned"]);
    fs::write(&changed, repacked(&file, |path, bytes| (path != "manifest.json.minisig").then_some(bytes)))
        .expect("ours");
    common::refused(&restore("a", &changed, &["--signer", &key]), &["has no signature"]);
    assert!(!lab.path("a").exists());

    let told = restore("b", &file, &["--signer", &key]).expect(0).stdout;
    assert!(told.contains(&key) && told.contains("1 API tokens") && told.contains("server.toml.restored"), "{told}");
    assert!(!lab.path("b").join("server.toml").exists());
    let tokens = |home: &str| lab.run_at(&lab.path(home), &["token", "list"]).expect(0).stdout;
    assert_eq!(tokens("b"), "");
    restore("c", &file, &["--signer", &key, "--with-tokens", "--with-commands"]).expect(0);
    assert!(tokens("c").contains("author") && lab.path("c").join("server.toml").exists());
}

/// A writer of an archive could leave the newest records of the audit log out of it.
#[test]
fn a_backup_whose_audit_log_is_another_one_is_refused() {
    let lab = passing();
    lab.run(&["token", "add", "one", "--scope", "admin"]).expect(0);
    let (early, late) = (lab.path("early.backup"), lab.path("late.backup"));
    let before = lab.json(&["backup", early.to_str().expect("text")]);
    lab.run(&["token", "add", "two", "--scope", "admin"]).expect(0);
    let after = lab.json(&["backup", late.to_str().expect("text")]);
    assert_eq!((&before["audit"]["records"], &after["audit"]["records"]), (&json!(1), &json!(2)));
    let state = std::cell::RefCell::new(Vec::new());
    repacked(&early, |path, bytes| {
        if path == "state.redb" {
            state.borrow_mut().clone_from(&bytes);
        }
        Some(bytes)
    });
    let state = state.into_inner();
    // With the digest of the older store in the manifest, which is unsigned.
    let changed = repacked(&late, |path, bytes| match path {
        "state.redb" => Some(state.clone()),
        "manifest.json" => {
            let mut manifest: Value = serde_json::from_slice(&bytes).expect("JSON");
            manifest.as_object_mut().expect("an object").remove("signer");
            manifest["rows"] = json!(0);
            for entry in manifest["files"].as_array_mut().expect("a list").iter_mut() {
                if entry["path"] == "state.redb" {
                    entry["bytes"] = json!(state.len());
                    entry["sha256"] = json!(longhaul_core::Digest::of(&state).to_string());
                }
            }
            Some(serde_json::to_vec(&manifest).expect("JSON"))
        }
        "manifest.json.minisig" => None,
        _ => Some(bytes),
    });
    let file = lab.path("changed.backup");
    fs::write(&file, changed).expect("ours");
    let home = lab.path("never");
    let refused = lab.run_at(&home, &["restore", file.to_str().expect("text"), "--unsigned"]);
    let last = after["audit"]["last"].as_str().expect("a digest");
    let expected = ["its audit log is not the one that was backed up, whose record 2", "none of its 1 records", last];
    common::refused(&refused, &expected);
    assert!(!home.exists());
    // As it was written it is put back, and its log goes on.
    let key = after["signer"].as_str().expect("signed");
    lab.run_at(&home, &["restore", late.to_str().expect("text"), "--signer", key]).expect(0);
    lab.run_at(&home, &["audit", "verify", "--expect", last]).expect(0);
}

/// A backup, as far as it is read, with a file of this path, or for the kind `2` a link.
fn archive_with(path: &str, kind: u8) -> Vec<u8> {
    let mut header = vec![0_u8; 512];
    header[..path.len()].copy_from_slice(path.as_bytes());
    for (at, text) in [(100, "0000600\0"), (108, "0000000\0"), (116, "0000000\0"), (124, "00000000000\0")] {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    header[136..148].copy_from_slice(b"00000000000\0");
    header[148..156].copy_from_slice(b"        ");
    header[156] = kind;
    header[157..168].copy_from_slice(b"/etc/passwd");
    header[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header.extend([0; 1_024]);
    zstd::encode_all(&header[..], 1).expect("in memory")
}
