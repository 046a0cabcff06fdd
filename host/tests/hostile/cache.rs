//! The cache of compiled code: what was changed there, or comes from elsewhere, is never run.

use super::{block_on, stays_healthy};
use crate::common::guests::guest;
use crate::common::guests::lab::{Lab, engine_with, private_directory};
use longhaul_core::Digest;
use longhaul_core::fault::Fault;
use longhaul_engine::{CompileLimits, Engine, EngineOptions, Jail};
use longhaul_plugins::LoadedPlugins;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

#[test]
fn compiled_code_that_is_cut_off_or_damaged_is_compiled_anew() {
    let bytes = guest("healthy");
    let directory = private_directory();
    let cache = directory.path().join("cache");
    block_on(async {
        let fresh = || engine_with(cache.clone(), CompileLimits::default()).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new();
        drop(fresh().load("healthy", &bytes).await.unwrap_or_else(|error| panic!("{error}")));
        let path = only_file(&cache);
        let whole = fs::read(&path).expect("readable");
        for length in [0, 1, 64, 4_096, whole.len() / 2, whole.len() - 1] {
            renew(&path, &whole[..length]);
            let plugin =
                fresh().load("healthy", &bytes).await.unwrap_or_else(|error| panic!("cut at {length}: {error}"));
            stays_healthy(&lab, &plugin).await;
            assert_eq!(fs::read(&path).expect("readable").len(), whole.len(), "cut at {length}");
        }
        // Compiled code of other bytes, or of another machine.
        let mut other = whole.clone();
        other[..32].fill(0);
        renew(&path, &other);
        let plugin = fresh().load("healthy", &bytes).await.unwrap_or_else(|error| panic!("{error}"));
        stays_healthy(&lab, &plugin).await;
    });
}

/// Loading compiled code runs it, and the cache used to load files of any writer.
#[test]
fn compiled_code_that_was_not_compiled_here_is_not_run() {
    let bytes = guest("healthy");
    let directory = private_directory();
    let (cache, elsewhere) = (directory.path().join("cache"), directory.path().join("elsewhere"));
    block_on(async {
        let open = |cache: &Path| engine_with(cache.to_owned(), CompileLimits::default());
        let fresh = |cache: &Path| open(cache).unwrap_or_else(|error| panic!("{error}"));
        let lab = Lab::new();
        for (cache, name) in [(&cache, "healthy"), (&elsewhere, "logs")] {
            drop(fresh(cache).load(name, &guest(name)).await.unwrap_or_else(|error| panic!("{error}")));
        }
        let path = only_file(&cache);
        let (whole, seal) = (fs::read(&path).expect("ours"), path.with_extension("seal"));
        let own_seal = fs::read(&seal).expect("ours");
        let modified = fs::metadata(&path).and_then(|found| found.modified()).expect("ours");
        let other = only_file(&elsewhere);
        let (other, other_seal) =
            (fs::read(&other).expect("ours"), fs::read(other.with_extension("seal")).expect("ours"));
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 1;
        // Code that wasmtime takes, of another component; and a letter of the own one. With the seal as it was, with
        // that of the other cache, with none, and with one that says nothing.
        for code in [&other, &flipped] {
            for planted in [&own_seal[..], &other_seal, b"", b"{}"] {
                renew(&path, code);
                fs::File::options().write(true).open(&path).and_then(|file| file.set_modified(modified)).expect("ours");
                fs::write(&seal, planted).expect("ours");
                let plugin = fresh(&cache).load("healthy", &bytes).await.unwrap_or_else(|error| panic!("{error}"));
                stays_healthy(&lab, &plugin).await;
                assert!(fs::read(&path).expect("ours") == whole, "it was compiled anew");
            }
        }
        // A whole cache with its seals, and the key that is here.
        renew(&path, &other);
        fs::write(&seal, &other_seal).expect("ours");
        let file = directory.path().join("healthy.wasm");
        fs::write(&file, &bytes).expect("ours");
        let plugin = fresh(&cache).load_file("healthy", &file).await.unwrap_or_else(|error| panic!("{error}"));
        stays_healthy(&lab, &plugin).await;
        // The key is for us alone.
        let key = cache.join("key");
        assert_eq!(fs::metadata(&key).expect("made").permissions().mode() & 0o777, 0o600);
        let readable: fn(&Path) -> std::io::Result<()> =
            |key| fs::set_permissions(key, fs::Permissions::from_mode(0o644));
        for spoil in [readable, |key| fs::write(key, "short")] {
            spoil(&key).expect("ours");
            let refused = open(&cache).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains("that we alone can read; remove it"), "{refused}");
        }
    });
}

/// A new file in the place of one: the old may be mapped.
fn renew(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).and_then(|()| fs::write(path, bytes)).expect("writable");
}

fn only_file(directory: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(directory).expect("readable").map(|entry| entry.expect("readable").path());
    let files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "cwasm")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.into_iter().next().expect("one")
}

#[test]
fn a_cache_that_others_can_reach_is_refused_with_its_remedy() {
    let directory = private_directory();
    let open =
        |path: &Path| engine_with(path.to_owned(), CompileLimits::default()).err().map(|error| error.to_string());
    for (mode, refused) in [(0o777, true), (0o750, true), (0o701, true), (0o700, false)] {
        let cache = directory.path().join(format!("mode-{mode:o}"));
        fs::create_dir(&cache).expect("made");
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).expect("ours");
        let told = open(&cache);
        assert_eq!(told.as_ref().is_some_and(|told| told.contains("chmod 700")), refused, "{mode:o}: {told:?}");
    }
    symlink(directory.path().join("mode-700"), directory.path().join("link")).expect("made");
    assert!(open(&directory.path().join("link")).is_some_and(|told| told.contains("no directory")));
    fs::write(directory.path().join("file"), "").expect("made");
    assert!(open(&directory.path().join("file")).is_some());
}

#[test]
fn of_many_that_need_the_same_plugin_at_once_one_compiles_it_and_all_get_it() {
    let bytes = guest("healthy");
    let directory = private_directory();
    let (cache, starts) = (directory.path().join("cache"), directory.path().join("starts"));
    // The compiler, with a mark of each of its starts.
    let line = format!(
        "echo started >> '{}'; exec '{}' compile-child \"$@\"",
        starts.display(),
        env!("CARGO_BIN_EXE_longhaul")
    );
    let engine = || {
        let arguments = ["-c", line.as_str(), "sh"].map(str::to_owned).to_vec();
        let jail = Jail { program: "/bin/sh".into(), arguments, limits: CompileLimits::default() };
        let options = EngineOptions { on_demand: true, ..EngineOptions::default() };
        Engine::new(cache.clone(), jail, &options).unwrap_or_else(|error| panic!("{error}"))
    };
    block_on(async {
        let lab = Lab::new();
        let mut loads = tokio::task::JoinSet::new();
        for engine in (0..6).map(|_| engine()) {
            let bytes = bytes.clone();
            loads.spawn(async move { engine.load("healthy", &bytes).await });
        }
        for plugin in loads.join_all().await {
            stays_healthy(&lab, &plugin.unwrap_or_else(|error| panic!("{error}"))).await;
        }
    });
    only_file(&cache);
    assert_eq!(fs::read_to_string(&starts).expect("it was compiled"), "started\n");
}

#[test]
fn a_pinned_plugin_is_read_once_and_no_other_of_its_name_is_taken_for_it() {
    let (bytes, other) = (guest("healthy"), guest("logs"));
    let directory = private_directory();
    block_on(async {
        let engine = engine_with(directory.path().join("cache"), CompileLimits::default());
        let engine = engine.unwrap_or_else(|error| panic!("{error}"));
        let (lab, loaded) = (Lab::new(), LoadedPlugins::default());
        let pinned = Digest::of(&bytes);
        let first = loaded.get_pinned(&engine, "healthy", pinned, || Ok(bytes.clone())).await.expect("it loads");
        let again = loaded.get_pinned(&engine, "healthy", pinned, || panic!("it is read again")).await;
        assert!(Arc::ptr_eq(&first, &again.expect("it is there")));
        stays_healthy(&lab, &first).await;
        let second = loaded.get_pinned(&engine, "healthy", Digest::of(&other), || Ok(other.clone())).await;
        assert_eq!(second.expect("it loads").digest(), Digest::of(&other));
        let lost = loaded.get_pinned(&engine, "healthy", Digest::of(b""), || Err(Fault::msg("it is lost"))).await;
        assert_eq!(lost.err().map(|error| error.to_string()).as_deref(), Some("it is lost"));
    });
}
