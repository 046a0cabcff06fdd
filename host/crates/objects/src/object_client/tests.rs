//! What a caller sees of a directory, and of storage that is away, refuses or answers what it should not.

use super::*;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn an_object_of_a_directory_is_found_whole_until_it_is_deleted() {
    let folder = tempfile::tempdir().expect("a directory");
    let config = ContentConfig::at(&format!("file://{}", folder.path().display()));
    let objects = ObjectClient::open(&config, &|_| None).expect("it exists");
    runtime().block_on(async {
        assert_eq!(objects.get("blobs/a/1", 9).await, Ok(None));
        objects.put("blobs/a/1", b"content".to_vec()).await.expect("room");
        assert_eq!(objects.get("blobs/a/1", 7).await, Ok(Some(b"content".to_vec())));
        let longer = objects.get("blobs/a/1", 6).await.expect_err("it has 7 bytes").to_string();
        assert!(longer.contains("blobs/a/1 has 7 bytes, and should have 6"), "{longer}");
        objects.delete("blobs/a/1").await.expect("it is there");
        objects.delete("blobs/a/1").await.expect("a second deletion finds nothing");
        assert_eq!(objects.get("blobs/a/1", 7).await, Ok(None));
        objects.probe().await.expect("it takes files");
    });
    for left in ["blobs/a", "probe"] {
        assert_eq!(std::fs::read_dir(folder.path().join(left)).expect("a folder").count(), 0, "{left}");
    }
}

#[test]
fn what_a_put_left_that_was_cut_off_goes_with_its_object() {
    let folder = tempfile::tempdir().expect("a directory");
    let config = ContentConfig::at(&format!("file://{}", folder.path().display()));
    let objects = ObjectClient::open(&config, &|_| None).expect("it exists");
    let object = folder.path().join("blobs/a/1");
    let unfinished = object.with_file_name("1#1");
    runtime().block_on(async {
        objects.put("blobs/a/1", b"content".to_vec()).await.expect("room");
        std::fs::write(&unfinished, b"cont").expect("room");
        objects.delete("blobs/a/1").await.expect("it is there");
        assert!(!object.exists() && !unfinished.exists());
        // An object whose first put was cut off.
        std::fs::write(&unfinished, b"cont").expect("room");
        objects.delete("blobs/a/1").await.expect("nothing is there but the rest");
        assert!(!unfinished.exists());
    });
}

#[test]
fn a_directory_that_went_away_takes_nothing_and_has_neither_lost_nor_deleted_an_object() {
    let folder = tempfile::tempdir().expect("a directory");
    let mounted = folder.path().join("mounted");
    std::fs::create_dir(&mounted).expect("room");
    let config = ContentConfig::at(&format!("file://{}", mounted.display()));
    let objects = ObjectClient::open(&config, &|_| None).expect("it exists");
    std::fs::remove_dir(&mounted).expect("it is empty");
    let (put, got, deleted) = runtime().block_on(async {
        let put = objects.put("blobs/a/1", b"content".to_vec()).await;
        (put, objects.get("blobs/a/1", 7).await.map(drop), objects.delete("blobs/a/1").await)
    });
    for outcome in [put, got, deleted] {
        assert!(matches!(outcome, Err(StoreError::Unreachable { .. })), "{outcome:?}");
    }
    assert!(!mounted.exists());
}

/// A bucket of a server on this machine, which gives every request the same answer.
fn answered(answer: Vec<u8>) -> ObjectClient {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let (mut asked, mut part) = (Vec::new(), [0; 4_096]);
            while !asked.ends_with(b"\r\n\r\n") {
                match stream.read(&mut part) {
                    Ok(0) | Err(_) => break,
                    Ok(length) => asked.extend_from_slice(&part[..length]),
                }
            }
            // The client may have read enough.
            let _ = stream.write_all(&answer);
        }
    });
    let config = ContentConfig { endpoint: Some(endpoint), ..in_bucket() };
    ObjectClient::open(&config, &|_| Some("of-tests".into())).expect("settings")
}

fn in_bucket() -> ContentConfig {
    ContentConfig {
        access_key_env: Some("ID".into()),
        secret_key_env: Some("KEY".into()),
        ..ContentConfig::at("s3://content/of/tests")
    }
}

#[test]
fn an_answer_that_is_longer_than_it_says_is_damage_and_is_not_kept() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    let chunk = [&b"100000\r\n"[..], &vec![b'x'; 1 << 20], b"\r\n"].concat();
    let objects = answered([head.as_bytes(), &chunk, b"0\r\n\r\n"].concat());
    let got = runtime().block_on(objects.get("blobs/a/1", 9));
    assert!(matches!(got, Err(StoreError::Damaged { .. })), "{:?}", got.map(|found| found.map(|found| found.len())));
}

#[test]
fn a_refusal_is_told_in_one_short_line_whatever_comes_after_its_start() {
    // Less comes than is promised, and none of it is awaited.
    let head = "HTTP/1.1 403 Forbidden\r\nContent-Length: 1000000\r\nConnection: close\r\n\r\n";
    let objects = answered([head.as_bytes(), b"no \x1b[31m\nentry ", &[b'x'; 32 << 10]].concat());
    let told = runtime().block_on(objects.get("blobs/a/1", 9)).expect_err("refused");
    assert!(matches!(told, StoreError::Refused { .. }), "{told:?}");
    let told = told.to_string();
    assert!(told.contains("no \\u001b[31m entry") && !told.contains('\n') && told.len() < 1_000, "{told}");
}

#[test]
fn storage_that_answers_is_not_away_whatever_it_answers() {
    let of_kind = |kind| {
        let why = HttpError::new(kind, io::Error::from(io::ErrorKind::ConnectionRefused));
        is_outage(&Error::Generic { store: "S3", source: Box::new(why) })
    };
    assert!(of_kind(HttpErrorKind::Connect) && of_kind(HttpErrorKind::Timeout));
    assert!(!of_kind(HttpErrorKind::Decode) && !is_outage(&of_directory("it is gone")));
}

#[test]
fn a_directory_that_is_not_there_is_refused_and_not_made() {
    let folder = tempfile::tempdir().expect("a directory");
    let absent = folder.path().join("absent");
    let config = ContentConfig::at(&format!("file://{}", absent.display()));
    let said = ObjectClient::open(&config, &|_| None).map(drop).map_err(|error| error.to_string());
    assert!(said.is_err_and(|said| said.contains("mount it, or make it")));
    assert!(!absent.exists());
}

#[test]
fn a_key_that_is_not_set_is_named_and_storage_that_is_away_is_an_outage() {
    let config = ContentConfig { endpoint: Some("http://127.0.0.1:1".into()), ..in_bucket() };
    let said = ObjectClient::open(&config, &|name| (name == "ID").then(|| "id".into()));
    let said = said.map(drop).map_err(|error| error.to_string());
    assert_eq!(said, Err("content.secret_key_env names `KEY`, which is not set; export it".to_owned()));
    let with_key = ContentConfig { secret_key_env: Some("hunter2".into()), ..config.clone() };
    let said = ObjectClient::open(&with_key, &|name| (name == "ID").then(|| "id".into()));
    let said = said.map(drop).map_err(|error| error.to_string());
    assert_eq!(said, Err("content.secret_key_env names a variable, which is not set; export it".to_owned()));
    let objects = ObjectClient::open(&config, &|name| Some(if name == "ID" { "id" } else { "hunter2" }.into()));
    let objects = objects.expect("settings");
    let (away, shown) = (Error::Generic { store: "S3", source: "a\nb".into() }, format!("{objects:?}"));
    let told = objects.told(&away);
    assert!(matches!(&told, StoreError::Unreachable { path, .. } if path == "s3://content/of/tests"), "{told:?}");
    assert!(!told.to_string().contains('\n') && !shown.contains("hunter2"), "{told} {shown}");
}

#[test]
fn a_full_disk_is_told_as_one() {
    let folder = tempfile::tempdir().expect("a directory");
    let config = ContentConfig::at(&format!("file://{}", folder.path().display()));
    let objects = ObjectClient::open(&config, &|_| None).expect("it exists");
    let full = Error::Generic { store: "x", source: Box::new(io::Error::from(io::ErrorKind::StorageFull)) };
    assert_eq!(objects.told(&full), StoreError::Full { path: config.url });
}
