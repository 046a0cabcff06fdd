//! Files that are no plugins: each is refused with what it is, before or by the compiler.

use super::{block_on, refused, stays_healthy};
use crate::common::guests::lab::{Lab, private_directory};
use crate::common::guests::{guest, with_module, with_nesting};
use expect_test::{Expect, expect};
use longhaul_engine::{CompileLimits, LoadError, inspect};
use std::fs;
use std::path::Path;

#[test]
fn a_file_that_is_cut_off_is_never_taken_and_never_breaks_the_host() {
    let whole = guest("healthy");
    let limits = CompileLimits::default();
    for end in 0..whole.len() {
        // Without the names at its end a plugin is whole, and another one.
        match inspect("cut", &whole[..end], &limits) {
            Ok(cut) => assert_eq!(cut.exports, ["longhaul:plugin/tool@0.1.0"], "cut at {end}"),
            Err(error) => assert!(error.to_string().contains("plugin `cut`"), "cut at {end}: {error}"),
        }
    }
    let accepted = (0..whole.len()).filter(|&end| inspect("cut", &whole[..end], &limits).is_ok()).count();
    assert!(accepted < 5, "{accepted} of {}", whole.len());
}

#[test]
fn a_file_with_any_byte_changed_is_refused_or_is_another_plugin() {
    let whole = guest("healthy");
    let limits = CompileLimits::default();
    for at in 0..whole.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            // No panic, and nothing that is taken for the plugin that it was.
            if let Ok(inspection) = inspect("changed", &changed, &limits) {
                assert_ne!(inspection.digest, longhaul_core::Digest::of(&whole));
            }
        }
    }
}

#[test]
fn code_that_is_damaged_inside_is_refused_by_the_compiler() {
    let whole = guest("healthy");
    block_on(async {
        let lab = Lab::new();
        let healthy = lab.load("healthy", &whole).await;
        // Within the first module, where a look at the sections alone sees nothing. What hits the words of its data is
        // no damage that a compiler could see.
        let mut refused = 0;
        for at in (1..8).map(|part| whole.len() * part / 12) {
            let mut changed = whole.clone();
            changed[at..at + 8].fill(0xff);
            if let Some(error) = lab.engine().load("changed", &changed).await.err() {
                assert!(error.to_string().contains("plugin `changed`"), "at {at}: {error}");
                refused += 1;
            }
        }
        assert!(refused >= 4, "{refused} of 7");
        stays_healthy(&lab, &healthy).await;
    });
}

/// The start of what is said to bytes that are no plugin.
#[track_caller]
fn check_refused(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&refused("it", bytes).to_string());
}

#[test]
fn what_is_no_plugin_is_told_what_it_is() {
    check_refused(
        b"",
        expect![
            "plugin `it` is not a component: it does not start as WebAssembly does; the file is corrupt or something else"
        ],
    );
    check_refused(
        b"#!/bin/sh\necho hello\n",
        expect![
            "plugin `it` is not a component: it does not start as WebAssembly does; the file is corrupt or something else"
        ],
    );
    check_refused(
        &wat::parse_str("(module)").expect("a module"),
        expect![
            "plugin `it` is not a component: it is a core module; make a component of it with `wasm-tools component new`, or build it with a tool chain that does"
        ],
    );
    check_refused(
        &wat::parse_str("(component)").expect("a component"),
        expect![
            "plugin `it` is no plugin of Longhaul: it exports none of planner, agent, evaluator, tool or memory of longhaul:plugin@0.1.0; see wit/v0.1/worlds.wit"
        ],
    );
    let command = r#"(component (component $run) (instance $run (instantiate $run)) (export "wasi:cli/run@0.2.12" (instance $run)))"#;
    check_refused(
        &wat::parse_str(command).expect("a component"),
        expect![
            "plugin `it` is no plugin of Longhaul: it exports none of planner, agent, evaluator, tool or memory of longhaul:plugin@0.1.0; see wit/v0.1/worlds.wit"
        ],
    );
}

#[test]
fn a_plugin_of_another_contract_is_told_which_one_is_spoken_here() {
    let mut other = guest("healthy");
    replace(&mut other, b"longhaul:plugin/tool@0.1.0", b"longhaul:plugin/tool@0.2.0");
    check_refused(
        &other,
        expect![
            "plugin `it` is no plugin of Longhaul: it exports `longhaul:plugin/tool@0.2.0`, and this host speaks longhaul:plugin 0.1.0; build it for that version, or update longhaul"
        ],
    );
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    assert_eq!(from.len(), to.len());
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
}

#[test]
fn a_file_is_refused_by_its_size_before_it_is_read() {
    let directory = private_directory();
    let path = directory.path().join("huge.wasm");
    fs::File::create(&path).and_then(|file| file.set_len(500 << 20)).expect("a sparse file");
    let read = |path: &Path| Lab::new().engine().read("huge", path).map(|bytes| bytes.len());
    let error = read(&path).expect_err("500 MiB");
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "bytes_max"), "{error}");
    // Files without a size or an end.
    let error = read(Path::new("/dev/zero")).expect_err("no file");
    assert!(matches!(error, LoadError::Unreadable { .. } | LoadError::Limit { .. }), "{error}");
    let error = read(directory.path()).expect_err("a directory");
    assert!(matches!(error, LoadError::Unreadable { .. }), "{error}");
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let limits = CompileLimits::default();
    assert_eq!(limits.nesting_max, 20);
    inspect("edge", &with_nesting(guest("healthy"), 19), &limits).unwrap_or_else(|error| panic!("{error}"));
    for depth in [20, 500] {
        let error = inspect("deep", &with_nesting(guest("healthy"), depth), &limits).expect_err("too deep");
        assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "nesting_max"), "{error}");
    }
}

#[test]
fn what_has_too_many_functions_is_refused() {
    let many = with_module(guest("healthy"), &format!("(module {})", "(func)".repeat(2_000)));
    let limits = CompileLimits { functions_max: 1_000, ..CompileLimits::default() };
    let error = inspect("many", &many, &limits).expect_err("too many");
    assert!(matches!(&error, LoadError::Limit { hit, .. } if hit.name == "functions_max"), "{error}");
}
