//! Content outside of the database: in a directory and in S3, beside kills, removals, outages and damage.

#[path = "support/s3.rs"]
mod s3;
#[path = "support/server.rs"]
mod server;
#[path = "support/stores.rs"]
mod stores;

use longhaul_core::Digest;
use longhaul_core::store::{Batch, Key, Op, Store as _, StoreError, Table};
use longhaul_postgres::{ContentConfig, PostgresConfig, PostgresOptions, PostgresStore, Waiting, probe_content};
use s3::S3Server;
use server::PostgresServer;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use stores::Losses;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The number of rows about objects in `kv`.
const OBJECTS: i16 = 1_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A new store with its large content in a directory.
fn settings(server: &PostgresServer) -> (TempDir, PostgresConfig) {
    let folder = tempfile::tempdir().unwrap();
    let content = Some(stores::content_in(folder.path()));
    (folder, PostgresConfig { content, ..stores::config(&server.url()) })
}

/// Content that does not compress to less than an object is for.
fn large(number: u8) -> Vec<u8> {
    (0..1_000_u32).flat_map(|at| *Digest::of(&[&at.to_le_bytes()[..], &[number]].concat()).as_bytes()).collect()
}

/// A batch with content, and a row that names it.
fn naming(row: &str, content: Vec<u8>) -> Batch {
    let mut batch = Batch::new();
    let digest = batch.blob(content);
    batch.put(Table::States, Key::of(row), digest.to_string())
}

fn delete(row: &str) -> Batch {
    Batch { ops: vec![Op::Delete(Table::States, Key::of(row))] }
}

/// The digest that a value names, if it is one.
fn named(value: &[u8]) -> Vec<Digest> {
    std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).into_iter().collect()
}

/// The files of all objects.
fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = below(folder.join("blobs")).flat_map(below).collect();
    found.sort();
    found
}

/// The states of all objects: 1 uploading, 2 kept, 3 condemned.
fn states(server: &PostgresServer, config: &PostgresConfig) -> Vec<String> {
    let asked = "select get_byte(value, 0) from SCHEMA.kv where table_no = OBJECTS order by 1";
    server.ask(&with_names(asked, config)).concat()
}

/// Has the grace of all objects run out.
fn age(server: &PostgresServer, config: &PostgresConfig) {
    let aged = "update SCHEMA.kv set value = substr(value, 1, 1) || '\\x0000000000000000'::bytea \
                where table_no = OBJECTS and get_byte(value, 0) <> 2";
    server.ask(&with_names(aged, config));
}

fn with_names(sql: &str, config: &PostgresConfig) -> String {
    sql.replace("SCHEMA", &config.schema).replace("OBJECTS", &OBJECTS.to_string())
}

#[test]
fn large_content_is_an_object_with_a_small_row_and_goes_after_its_row_and_the_grace() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (folder, config) = settings(&server);
    let store = stores::open(&config, "a");
    let small = vec![7_u8; 4_095];
    runtime.block_on(store.commit(naming("large", large(1)))).unwrap();
    runtime.block_on(store.commit(naming("small", small.clone()))).unwrap();
    assert_eq!((files(folder.path()).len(), states(&server, &config)), (1, vec!["2".to_owned()]));
    let row = format!("select max(octet_length(bytes)) from {}.blob", config.schema);
    assert!(server.value(&row).parse::<u32>().unwrap() < 100);
    assert_eq!(store.blob(&Digest::of(&large(1))).unwrap(), Some(large(1)));
    assert_eq!(store.blob(&Digest::of(&small)).unwrap(), Some(small));
    // What is known is not put again.
    runtime.block_on(store.commit(naming("again", large(1)))).unwrap();
    assert_eq!(files(folder.path()).len(), 1);

    for row in ["large", "again"] {
        runtime.block_on(store.commit(delete(row))).unwrap();
    }
    let removed = runtime.block_on(store.collect(&named, false)).unwrap();
    assert!(removed.removed == 1 && removed.bytes > 30_000, "{removed:?}");
    assert_eq!(store.blob(&Digest::of(&large(1))).unwrap(), None);
    assert_eq!((files(folder.path()).len(), states(&server, &config)), (1, vec!["3".to_owned()]), "the grace runs");
    age(&server, &config);
    runtime.block_on(store.collect(&named, true)).unwrap();
    assert_eq!(files(folder.path()).len(), 1, "a dry run deletes nothing");
    runtime.block_on(store.collect(&named, false)).unwrap();
    assert_eq!((files(folder.path()).len(), states(&server, &config).len()), (0, 0));
}

#[test]
fn content_that_comes_again_while_its_object_is_condemned_is_another_object() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (folder, config) = settings(&server);
    let store = stores::open(&config, "a");
    runtime.block_on(store.commit(naming("row", large(1)))).unwrap();
    runtime.block_on(store.commit(delete("row"))).unwrap();
    runtime.block_on(store.collect(&named, false)).unwrap();
    age(&server, &config);
    runtime.block_on(store.commit(naming("row", large(1)))).unwrap();
    assert_eq!(states(&server, &config), ["2", "3"]);
    let digest = Digest::of(&large(1));
    runtime.block_on(store.collect(&named, false)).unwrap();
    assert_eq!((files(folder.path()).len(), states(&server, &config)), (1, vec!["2".to_owned()]));
    assert_eq!(store.blob(&digest).unwrap(), Some(large(1)));
    drop(store);
    assert_eq!(stores::open(&config, "b").blob(&digest).unwrap(), Some(large(1)));
}

/// The tables are copied between the put and the commit, as the end of the process would leave them.
#[test]
fn an_object_whose_writer_ended_before_it_named_it_is_deleted_and_its_content_is_stored_anew() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (folder, config) = settings(&server);
    let left = PostgresConfig { schema: format!("{}_left", config.schema), ..config.clone() };
    let (reached, put) = (AtomicUsize::new(0), Arc::new(Mutex::new(0)));
    let hook = {
        let (server, from, to) = (Arc::clone(&server), config.schema.clone(), left.schema.clone());
        let (folder, put) = (folder.path().to_owned(), Arc::clone(&put));
        move |point: &'static str| {
            // The announcement of the object is the first commit.
            if point == "store.before-commit" && reached.fetch_add(1, Ordering::SeqCst) == 1 {
                *put.lock().unwrap() = files(&folder).len();
                copy_schema(&server, &from, &to);
            }
        }
    };
    let options = PostgresOptions { crash_hook: Some(Arc::new(hook)), ..Losses::default().options("a") };
    let killed = PostgresStore::open(&config, &|_| None, options).unwrap();
    runtime.block_on(killed.commit(naming("row", large(1)))).unwrap();
    drop(killed);
    assert_eq!((*put.lock().unwrap(), states(&server, &left)), (1, vec!["1".to_owned()]));

    let store = stores::open(&left, "b");
    assert_eq!(store.blob(&Digest::of(&large(1))).unwrap(), None, "nothing of the batch is there");
    runtime.block_on(store.collect(&named, false)).unwrap();
    assert_eq!(states(&server, &left), ["1"], "a writer may still be at work");
    for expected in ["3", ""] {
        age(&server, &left);
        runtime.block_on(store.collect(&named, false)).unwrap();
        assert_eq!(states(&server, &left).concat(), expected);
    }
    assert_eq!(files(folder.path()).len(), 0);
    runtime.block_on(store.commit(naming("row", large(1)))).unwrap();
    assert_eq!(store.blob(&Digest::of(&large(1))).unwrap(), Some(large(1)));
}

fn copy_schema(server: &PostgresServer, from: &str, to: &str) {
    let tables = ["meta", "owner", "worker", "kv", "blob"].map(|name| {
        format!(
            "create table {to}.{name} (like {from}.{name} including all); insert into {to}.{name} table {from}.{name};"
        )
    });
    let ownerless = format!("update {to}.owner set nonce = null, lease_until = null;");
    server.ask(&format!("create schema {to}; {} {ownerless}", tables.concat()));
}

/// The removal comes between the put and the commit, as to a writer that slept for longer than the grace.
#[test]
fn a_writer_whose_object_was_condemned_meanwhile_writes_nothing_and_may_try_again() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (_folder, config) = settings(&server);
    let owner = stores::open(&config, "a");
    let reached = AtomicUsize::new(0);
    let hook = {
        let (server, config, owner) = (Arc::clone(&server), config.clone(), Arc::clone(&owner));
        move |point: &'static str| {
            if point == "store.before-commit" && reached.fetch_add(1, Ordering::SeqCst) == 1 {
                age(&server, &config);
                // On a thread of its own: this one is in a runtime.
                let owner = Arc::clone(&owner);
                let collected = std::thread::spawn(move || {
                    Runtime::new().unwrap().block_on(owner.collect(&named, false)).unwrap();
                });
                collected.join().unwrap();
            }
        }
    };
    let options = PostgresOptions { crash_hook: Some(Arc::new(hook)), ..Losses::default().options("w-1") };
    let never = &mut |_: &Waiting| ControlFlow::Break(());
    let writer = PostgresStore::join(&config, &|_| None, options, "w-1", never).unwrap();
    let refused = runtime.block_on(writer.commit(naming("row", large(1)))).unwrap_err();
    assert!(matches!(refused, StoreError::Failed { .. }), "{refused:?}");
    assert!(refused.to_string().contains("longer than content.grace_s"), "{refused}");
    assert_eq!(writer.get(Table::States, &Key::of("row")).unwrap(), None);
    assert_eq!(states(&server, &config), ["3"]);
    runtime.block_on(writer.commit(naming("row", large(1)))).unwrap();
    assert_eq!(writer.blob(&Digest::of(&large(1))).unwrap(), Some(large(1)));
}

#[test]
fn of_writers_that_store_the_same_content_at_once_one_object_stays() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (folder, config) = settings(&server);
    let owner = stores::open(&config, "a");
    let worker = stores::join(&config, "w-1", &Losses::default());
    runtime.block_on(async {
        let commits = (0..8).map(|number: u8| {
            let store = Arc::clone(if number.is_multiple_of(2) { &owner } else { &worker });
            tokio::spawn(async move { store.commit(naming(&number.to_string(), large(1))).await })
        });
        for commit in commits.collect::<Vec<_>>() {
            commit.await.unwrap().unwrap();
        }
    });
    for _ in 0..2 {
        runtime.block_on(owner.collect(&named, false)).unwrap();
        age(&server, &config);
    }
    runtime.block_on(owner.collect(&named, false)).unwrap();
    assert_eq!((files(folder.path()).len(), states(&server, &config)), (1, vec!["2".to_owned()]));
    for store in [&owner, &worker] {
        assert_eq!(store.blob(&Digest::of(&large(1))).unwrap(), Some(large(1)));
    }
}

#[test]
fn an_object_that_is_missing_or_changed_is_damage_and_settings_that_are_gone_are_asked_for() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (folder, config) = settings(&server);
    let (store, digest) = (stores::open(&config, "a"), Digest::of(&large(1)));
    runtime.block_on(store.commit(naming("row", large(1)))).unwrap();
    let [file] = <[PathBuf; 1]>::try_from(files(folder.path())).unwrap();
    let whole = fs::read(&file).unwrap();
    let mut changed = whole.clone();
    *changed.last_mut().unwrap() ^= 1;
    let is_damage = |words: &str| {
        for why in [store.blob(&digest).unwrap_err(), store.read_all().unwrap_err()] {
            assert!(matches!(&why, StoreError::Damaged { detail, .. } if detail.contains(words)), "{why:?}");
        }
    };
    for (content, words) in [
        (changed, digest.short()),
        (whole[..9].to_vec(), digest.short()),
        ([&whole[..], b"x"].concat(), "bytes".into()),
    ] {
        fs::write(&file, content).unwrap();
        is_damage(&words);
    }
    fs::remove_file(&file).unwrap();
    is_damage("see that content.url of [store] is where it was written");
    fs::write(&file, whole).unwrap();
    assert_eq!(store.blob(&digest).unwrap(), Some(large(1)));
    drop(store);
    let without = PostgresConfig { content: None, ..config };
    let refused = stores::open(&without, "b").blob(&digest).unwrap_err().to_string();
    assert!(refused.contains("write [store.content] again") && !refused.contains('\n'), "{refused}");
}

#[test]
fn a_directory_that_is_gone_fails_commits_of_large_content_alone() {
    let (runtime, server) = (runtime(), PostgresServer::shared());
    let (folder, config) = settings(&server);
    let store = stores::open(&config, "a");
    // No directory can be made below a file.
    let place = folder.path().join("blobs");
    fs::write(&place, b"").unwrap();
    let failed = runtime.block_on(store.commit(naming("row", large(1)))).unwrap_err();
    assert!(failed.to_string().contains(&config.content.as_ref().unwrap().url), "{failed}");
    assert_eq!(store.get(Table::States, &Key::of("row")).unwrap(), None);
    runtime.block_on(store.commit(naming("small", b"small".to_vec()))).unwrap();
    fs::remove_file(&place).unwrap();
    runtime.block_on(store.commit(naming("row", large(1)))).unwrap();
    assert_eq!(store.blob(&Digest::of(&large(1))).unwrap(), Some(large(1)));
}

#[test]
fn content_in_s3_is_put_read_and_deleted_and_an_outage_loses_nothing() {
    // One server for all of it: it takes seconds to start.
    let (runtime, server, storage) = (runtime(), PostgresServer::shared(), S3Server::start());
    let config = PostgresConfig { content: Some(storage.content()), ..stores::config(&server.url()) };
    let open = |host: &str| PostgresStore::open(&config, &s3::variable, Losses::default().options(host)).unwrap();
    let store = open("a");
    let contents: Vec<Vec<u8>> = (1..=12).map(large).chain([vec![b'x'; 9 << 20]]).collect();
    let mut batch = Batch::new();
    for content in &contents {
        let digest = batch.blob(content.clone());
        batch = batch.put(Table::States, Key::of(&digest.to_string()), digest.to_string());
    }
    runtime.block_on(store.commit(batch)).unwrap();
    let names = storage.names();
    assert_eq!(names.len(), contents.len(), "{names:?}");
    let digest = Digest::of(&contents[0]).to_string();
    let start = format!("of/longhaul/blobs/{}/{digest}-", &digest[..2]);
    assert!(names.iter().any(|name| name.starts_with(&start)), "{names:?}");
    drop(store);
    let store = open("b");
    for content in &contents {
        assert!(store.blob(&Digest::of(content)).unwrap().as_ref() == Some(content));
    }
    assert_eq!(store.read_all().unwrap().rows, 2 * contents.len() as u64);
    assert!(probe_content(&config, &s3::variable).unwrap().is_some_and(|(place, _)| place.starts_with("s3://content")));
    let no_bucket = ContentConfig { url: "s3://no-such-bucket".into(), ..storage.content() };
    let refused = probe_content(&PostgresConfig { content: Some(no_bucket), ..config.clone() }, &s3::variable);
    assert!(refused.is_err_and(|why| matches!(&why, StoreError::Refused { remedy, .. } if remedy.contains("bucket"))));

    let row = Digest::of(&contents[0]).to_string();
    runtime.block_on(store.commit(delete(&row))).unwrap();
    assert_eq!(runtime.block_on(store.collect(&named, false)).unwrap().removed, 1);
    age(&server, &config);
    runtime.block_on(store.collect(&named, false)).unwrap();
    assert_eq!(storage.names().len(), contents.len() - 1);

    drop(storage);
    // All repetitions are waited for once: then the storage is away.
    let away = runtime.block_on(store.commit(naming("late", large(99)))).unwrap_err();
    assert!(matches!(&away, StoreError::Unreachable { path, .. } if path.starts_with("s3://content")), "{away:?}");
    assert!(!away.to_string().contains('\n') && !away.to_string().contains("of-tests"), "{away}");
    let unread = store.blob(&Digest::of(&contents[1])).unwrap_err();
    assert!(matches!(unread, StoreError::Unreachable { .. }), "{unread:?}");
    assert_eq!(store.get(Table::States, &Key::of("late")).unwrap(), None);
    runtime.block_on(store.commit(naming("small", b"small".to_vec()))).unwrap();
}
