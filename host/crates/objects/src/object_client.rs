//! Puts, gets and deletions of whole objects. Each has a bound of time and of memory, is repeated while its error may
//! pass, and ends with an error of a store that says what to do. What storage answers is not trusted.

use crate::config::{ContentConfig, refused};
use crate::outage::{Outage, Turn};
use crate::place::{Bucket, Place};
use crate::transport::{Transport, transfer};
use futures_util::TryStreamExt as _;
use longhaul_core::store::StoreError;
use longhaul_core::text;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutOptions, RetryConfig};
use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, iter};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// The time within which a request is begun again, the number of repetitions, and the pauses between, which are drawn.
/// Storage that refuses each of them at once is waited for during about five seconds, and silent storage for longer.
const RETRY_MAX: Duration = Duration::from_secs(30);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const PAUSE_GROWTH: f64 = 4.0;
const RETRIES_MAX: usize = 8;

/// The longest time for one operation besides its transfer: the repetitions, and a last one that is not answered.
const OPERATION_MAX: Duration = Duration::from_secs(60);

/// The longest text of an error of the storage, in bytes: some answer with a page.
const DETAIL_BYTES_MAX: usize = 300;

/// The end of the name of a file beside an object, which `object_store` writes first and gives the object's name then.
const UNFINISHED: &str = "#1";

/// The content of the object that [`ObjectClient::probe`] makes and deletes.
const PROBE: &[u8] = b"longhaul doctor";

/// The objects at one place.
#[derive(Debug)]
pub struct ObjectClient {
    store: Arc<dyn ObjectStore>,
    /// The same without repetitions, to ask whether a place that is away is back.
    once: Arc<dyn ObjectStore>,
    outage: Outage,
    /// The part before each name, with its `/`; empty where there is none.
    prefix: String,
    /// The place for people.
    address: String,
    /// The directory; none for a bucket.
    directory: Option<PathBuf>,
}

impl ObjectClient {
    /// The objects of settings. Keys are read from the environment by `variable`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for invalid settings, variables that are not set, and a directory that does not exist:
    /// it may be one that is not mounted.
    pub fn open(config: &ContentConfig, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, StoreError> {
        config.check()?;
        let address = config.url.clone();
        Ok(match Place::of(config)? {
            Place::Directory(path) => {
                let opened = LocalFileSystem::new_with_prefix(&path).map_err(|_| {
                    refused(
                        format!("the directory `{}` of content.url cannot be used", path.display()),
                        "mount it, or make it, and let the user of longhaul write there",
                    )
                })?;
                // Folders below it stay: a put would race with the removal of an empty one.
                let store: Arc<dyn ObjectStore> = Arc::new(opened.with_fsync(true));
                let (once, prefix) = (Arc::clone(&store), String::new());
                Self { store, once, outage: Outage::default(), prefix, address, directory: Some(path) }
            }
            Place::Bucket(bucket) => {
                let prefix = if bucket.prefix.is_empty() { String::new() } else { format!("{}/", bucket.prefix) };
                let store = Arc::new(connected(&bucket, variable, RETRIES_MAX)?);
                let once = Arc::new(connected(&bucket, variable, 0)?);
                Self { store, once, outage: Outage::default(), prefix, address, directory: None }
            }
        })
    }

    /// The place, for people.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Puts an object, in place of any other. When this returns `Ok`, it survives a kill.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`], [`StoreError::Refused`] for missing rights, and [`StoreError::Full`].
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), StoreError> {
        let (limit, turn) = (limit(bytes.len()), self.turn().await?);
        let put = timeout(limit, self.send(self.store(&turn), name, bytes)).await;
        self.ended(turn, limit, put)?.map_err(|error| self.told(&error))
    }

    /// Gets an object of at most `bytes_max`; none where there is none.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`StoreError::Damaged`] for a longer one.
    pub async fn get(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let (limit, turn) = (limit(bytes_max), self.turn().await?);
        let got = timeout(limit, self.fetch(self.store(&turn), name, bytes_max)).await;
        match self.ended(turn, limit, got)? {
            Ok(Ok(found)) => Ok(Some(found)),
            Ok(Err(length)) => Err(StoreError::Damaged {
                path: self.address.clone(),
                detail: format!("the object {name} has {length} bytes, and should have {bytes_max}"),
            }),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.told(&error)),
        }
    }

    /// Deletes an object, if it exists.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let turn = self.turn().await?;
        let deleted = timeout(OPERATION_MAX, self.remove(self.store(&turn), name)).await;
        self.ended(turn, OPERATION_MAX, deleted)?.map_err(|error| self.told(&error))
    }

    /// Puts, gets and deletes a small object; returns the time that it took.
    ///
    /// # Errors
    /// As [`put`](Self::put), [`get`](Self::get) and [`delete`](Self::delete).
    pub async fn probe(&self) -> Result<Duration, StoreError> {
        let number = getrandom::u64().map_err(|why| self.failed(format!("no random number: {why}")))?;
        let (name, began) = (format!("probe/{number:016x}"), Instant::now());
        self.put(&name, PROBE.to_vec()).await?;
        let found = self.get(&name, PROBE.len()).await?;
        self.delete(&name).await?;
        if found.as_deref() != Some(PROBE) {
            return Err(self.failed("an object that was put was not found again".to_owned()));
        }
        Ok(began.elapsed())
    }

    async fn send(&self, store: &dyn ObjectStore, name: &str, bytes: Vec<u8>) -> object_store::Result<()> {
        // A put would make the directory, on the disk below an absent mount.
        self.see_directory().await?;
        store.put_opts(&self.path(name), bytes.into(), PutOptions::default()).await.map(drop)
    }

    /// The object, or its length where that is above `bytes_max`.
    async fn fetch(
        &self,
        store: &dyn ObjectStore,
        name: &str,
        bytes_max: usize,
    ) -> object_store::Result<Result<Vec<u8>, u64>> {
        let found = match store.get_opts(&self.path(name), GetOptions::default()).await {
            Ok(found) => found,
            Err(error) => return Err(self.absent(error).await),
        };
        let length = found.meta.size;
        // The length is the storage's word, and bounds what is allocated.
        if !usize::try_from(length).is_ok_and(|length| length <= bytes_max) {
            return Ok(Err(length));
        }
        if self.directory.is_some() {
            return Ok(Ok(found.bytes().await?.into()));
        }
        // What follows may be longer than that.
        let (mut parts, mut bytes) = (found.into_stream(), Vec::new());
        while let Some(part) = parts.try_next().await? {
            bytes.extend_from_slice(&part);
            if bytes.len() > bytes_max {
                return Ok(Err(bytes.len() as u64));
            }
        }
        Ok(Ok(bytes))
    }

    async fn remove(&self, store: &dyn ObjectStore, name: &str) -> object_store::Result<()> {
        match store.delete(&self.path(name)).await {
            Ok(()) => {}
            Err(error @ Error::NotFound { .. }) => match self.absent(error).await {
                Error::NotFound { .. } => {}
                gone => return Err(gone),
            },
            Err(error) => return Err(error),
        }
        let Some(directory) = &self.directory else { return Ok(()) };
        // Left by a put that was cut off.
        match tokio::fs::remove_file(directory.join(format!("{name}{UNFINISHED}"))).await {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(of_directory(why)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// The error of an object that is not there, or that of a directory that is not there.
    async fn absent(&self, error: Error) -> Error {
        match error {
            Error::NotFound { .. } => self.see_directory().await.err().unwrap_or(error),
            other => other,
        }
    }

    /// Refuses where the directory is gone, as when it is no longer mounted.
    async fn see_directory(&self) -> object_store::Result<()> {
        let Some(directory) = &self.directory else { return Ok(()) };
        match tokio::fs::metadata(directory).await {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(of_directory("it is no directory any more")),
            Err(why) => Err(of_directory(why)),
        }
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.prefix))
    }

    /// The storage as an operation in its turn asks it.
    fn store(&self, turn: &Turn<'_>) -> &dyn ObjectStore {
        if turn.is_probe() { &*self.once } else { &*self.store }
    }

    async fn turn(&self) -> Result<Turn<'_>, StoreError> {
        let turn = self.outage.turn().await;
        turn.ok_or_else(|| self.unreachable("it is away, and is asked by one call at a time".to_owned()))
    }

    /// Ends the turn of an operation, and notes whether the place answered.
    fn ended<T>(
        &self,
        turn: Turn<'_>,
        limit: Duration,
        outcome: Result<object_store::Result<T>, Elapsed>,
    ) -> Result<object_store::Result<T>, StoreError> {
        let is_away = match &outcome {
            Err(_) => true,
            Ok(Err(error)) => is_outage(error),
            Ok(Ok(_)) => false,
        };
        if is_away && self.outage.failed() {
            tracing::warn!(place = %self.address, "content outside of the database is away; calls wait for it no more");
        } else if !is_away && self.outage.answered() {
            tracing::info!(place = %self.address, "content outside of the database is back");
        }
        drop(turn);
        outcome.map_err(|_| self.unreachable(format!("no answer within {} s", limit.as_secs())))
    }

    fn failed(&self, detail: String) -> StoreError {
        StoreError::Failed { path: self.address.clone(), detail }
    }

    fn unreachable(&self, detail: String) -> StoreError {
        StoreError::Unreachable { path: self.address.clone(), detail }
    }

    /// The store's error for one of the storage.
    fn told(&self, error: &Error) -> StoreError {
        let (kind, detail) = (kind_of(error), one_line(error));
        let is_denied = matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
            || kind == Some(io::ErrorKind::PermissionDenied);
        if kind == Some(io::ErrorKind::StorageFull) {
            return StoreError::Full { path: self.address.clone() };
        }
        if is_denied && self.directory.is_some() {
            return refused(
                format!("the directory of content.url takes no file: {detail}"),
                "let the user of longhaul write there",
            );
        }
        if is_denied {
            return refused(
                format!("the storage of content in `{}` refuses: {detail}", self.address),
                "check the variables of content.access_key_env and content.secret_key_env, content.region, and the \
                 right to put, get and delete objects; a key that may not list them is refused a missing one, too",
            );
        }
        if matches!(error, Error::NotFound { .. }) {
            return refused(
                format!("the place of content `{}` does not exist: {detail}", self.address),
                "create the bucket, or correct content.url and content.endpoint",
            );
        }
        self.unreachable(detail)
    }
}

/// A client of a bucket. Its keys are those of the named variables alone.
fn connected(
    bucket: &Bucket,
    variable: &dyn Fn(&str) -> Option<String>,
    retries_max: usize,
) -> Result<AmazonS3, StoreError> {
    let key = |setting: &str, name: &str| {
        // A key in the place of a name has small letters.
        let is_shown = !name.bytes().any(|byte| byte.is_ascii_lowercase());
        let shown = if is_shown { format!("`{name}`") } else { "a variable".to_owned() };
        let missing = || refused(format!("content.{setting} names {shown}, which is not set"), "export it");
        variable(name).filter(|value| !value.is_empty()).ok_or_else(missing)
    };
    let unfit = |why: String| refused(format!("no client for `s3://{}`: {why}", bucket.name), "check [store.content]");
    let transport = Transport::to(bucket).map_err(unfit)?;
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_access_key_id(key("access_key_env", &bucket.access_key_env)?)
        .with_secret_access_key(key("secret_key_env", &bucket.secret_key_env)?)
        .with_allow_http(bucket.is_clear())
        .with_retry(RetryConfig {
            backoff: BackoffConfig { init_backoff: PAUSE_MIN, max_backoff: PAUSE_MAX, base: PAUSE_GROWTH },
            max_retries: retries_max,
            retry_timeout: RETRY_MAX,
        })
        // Not every server has the request that deletes many.
        .with_disable_bulk_delete(true)
        .with_http_connector(transport);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
    }
    builder.build().map_err(|error| unfit(one_line(&error)))
}

/// The longest time for an operation that transfers so many bytes.
fn limit(bytes: usize) -> Duration {
    OPERATION_MAX.saturating_add(transfer(bytes))
}

/// True where the place did not answer. One that refuses has answered.
fn is_outage(error: &Error) -> bool {
    let mut kinds = causes(error).filter_map(|cause| cause.downcast_ref::<HttpError>()).map(HttpError::kind);
    kinds.any(|kind| matches!(kind, HttpErrorKind::Connect | HttpErrorKind::Timeout))
}

/// The kind of the system's error below one of the storage.
fn kind_of(error: &Error) -> Option<io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

fn causes(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    iter::successors(error.source(), |&cause| cause.source())
}

/// The error of the directory itself.
fn of_directory(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Generic { store: "directory", source: why.into() }
}

/// The text of an error in one line, cut where it is long. Some of it is the storage's.
fn one_line(error: &Error) -> String {
    text::printable(&error.to_string(), DETAIL_BYTES_MAX)
}

#[cfg(test)]
mod tests {
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
        assert!(
            matches!(got, Err(StoreError::Damaged { .. })),
            "{:?}",
            got.map(|found| found.map(|found| found.len()))
        );
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
}
