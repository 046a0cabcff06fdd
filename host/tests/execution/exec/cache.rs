//! The cache of compiled interpreters, by the stamps of their files.

use super::folder;
use crate::common::repository;
use longhaul::exec::CompileLimits;
use longhaul_engine::{Engine, EngineOptions, Jail};
use std::fs;
use std::path::{Path, PathBuf};

/// The notes about files in a cache.
fn notes(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache).expect("readable").filter_map(Result::ok).map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "known")).collect()
}

#[tokio::test]
async fn a_file_that_did_not_change_is_known_and_one_that_did_is_read() {
    let (place, _) = folder();
    let cache = place.path().join("cache");
    // Each time as a new process would.
    let load = async |path: &Path| {
        let jail = Jail {
            program: env!("CARGO_BIN_EXE_longhaul").into(),
            arguments: vec!["compile-child".into()],
            limits: CompileLimits::default(),
        };
        let options = EngineOptions { on_demand: true, ..EngineOptions::default() };
        let engine = Engine::new(cache.clone(), jail, &options).expect("an engine");
        engine.load_file("files", path).await.unwrap_or_else(|error| panic!("{error}")).inspection().clone()
    };
    let shipped = |name: &str| repository().join("target/plugins").join(name);
    let first = load(&shipped("files.wasm")).await;
    let [note] = notes(&cache).try_into().expect("it was built a while ago");
    let known = load(&shipped("files.wasm")).await;
    assert_eq!((known.digest, known.exports, known.bytes), (first.digest, first.exports.clone(), first.bytes));
    // The known files come from the note; otherwise this would not show.
    let text = fs::read_to_string(&note).expect("text");
    fs::write(&note, text.replace("\"functions\":", "\"functions\":1")).expect("ours");
    assert_ne!(load(&shipped("files.wasm")).await.functions, first.functions);
    // Without what it was compiled to, or with half a note, it is read and compiled as at first.
    for entry in fs::read_dir(&cache).expect("readable").filter_map(Result::ok) {
        if entry.path().extension().is_some_and(|end| end == "cwasm") {
            fs::remove_file(entry.path()).expect("ours");
        }
    }
    assert_eq!(load(&shipped("files.wasm")).await.functions, first.functions);
    fs::write(&note, &text[..text.len() / 2]).expect("ours");
    assert_eq!(load(&shipped("files.wasm")).await.functions, first.functions);
    // A file that changed a moment ago is not noted, so that its next change shows.
    let path = place.path().join("changes.wasm");
    for (name, same) in [("files.wasm", true), ("check-evaluator.wasm", false)] {
        fs::copy(shipped(name), &path).expect("copied");
        assert_eq!(load(&path).await.digest == first.digest, same, "{name}");
        assert_eq!(notes(&cache), std::slice::from_ref(&note));
    }
}
