//! Puts, gets and deletions of whole objects. Each has a bound of time, is repeated while its error may pass, and ends
//! with an error of a store that says what to do.

use crate::config::{ContentConfig, refused};
use crate::place::{Bucket, Place};
use crate::transport::{Transport, transfer};
use longhaul_core::store::StoreError;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{BackoffConfig, Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutOptions, RetryConfig};
use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// The time within which a request is begun again, the number of repetitions, and the pauses between. Storage that
/// refuses each of them at once is waited for during about ten seconds, and one that is silent for longer.
const RETRY_MAX: Duration = Duration::from_secs(30);
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const RETRIES_MAX: usize = 8;

/// The longest time for one operation besides its transfer: the repetitions, and a last one that is not answered.
const OPERATION_MAX: Duration = Duration::from_secs(60);

/// The longest text of an error of the storage, in characters: some answer with a page.
const DETAIL_CHARS_MAX: usize = 300;

/// The content of the object that [`ObjectClient::probe`] makes and deletes.
const PROBE: &[u8] = b"longhaul doctor";

/// The objects at one place.
#[derive(Debug)]
pub struct ObjectClient {
    store: Arc<dyn ObjectStore>,
    /// The part before each name, with its `/`; empty where there is none.
    prefix: String,
    /// The place for people.
    address: String,
    is_directory: bool,
}

impl ObjectClient {
    /// The objects of settings. Keys are read from the environment by `variable`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for invalid settings, variables that are not set, and a directory that does not exist: it
    /// may be one that is not mounted.
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
                let store = Arc::new(opened.with_fsync(true).with_automatic_cleanup(true));
                Self { store, prefix: String::new(), address, is_directory: true }
            }
            Place::Bucket(bucket) => {
                let prefix = if bucket.prefix.is_empty() { String::new() } else { format!("{}/", bucket.prefix) };
                Self { store: Arc::new(connected(&bucket, variable)?), prefix, address, is_directory: false }
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
        let (path, limit) = (self.path(name), limit(bytes.len()));
        let put = self.bounded(limit, self.store.put_opts(&path, bytes.into(), PutOptions::default())).await?;
        put.map(drop).map_err(|error| self.told(&error))
    }

    /// Gets an object of at most `bytes_max`; none where there is none.
    ///
    /// # Errors
    /// As [`put`](Self::put); [`StoreError::Damaged`] for a longer one.
    pub async fn get(&self, name: &str, bytes_max: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let got = self.bounded(limit(bytes_max), self.fetch(name, bytes_max)).await?;
        match got {
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
        let path = self.path(name);
        match self.bounded(OPERATION_MAX, self.store.delete(&path)).await? {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.told(&error)),
        }
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

    /// The object, or its length where that is above `bytes_max`.
    async fn fetch(&self, name: &str, bytes_max: usize) -> object_store::Result<Result<Vec<u8>, u64>> {
        let found = self.store.get_opts(&self.path(name), GetOptions::default()).await?;
        let length = found.meta.size;
        // The length is the storage's word, and bounds what is allocated.
        if !usize::try_from(length).is_ok_and(|length| length <= bytes_max) {
            return Ok(Err(length));
        }
        Ok(Ok(found.bytes().await?.into()))
    }

    fn path(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.prefix))
    }

    async fn bounded<T>(&self, limit: Duration, operation: impl Future<Output = T>) -> Result<T, StoreError> {
        let late = |_| self.unreachable(format!("no answer within {} s", limit.as_secs()));
        timeout(limit, operation).await.map_err(late)
    }

    fn failed(&self, detail: String) -> StoreError {
        StoreError::Failed { path: self.address.clone(), detail }
    }

    fn unreachable(&self, detail: String) -> StoreError {
        StoreError::Unreachable { path: self.address.clone(), detail }
    }

    /// The store's error for one of the storage.
    fn told(&self, error: &Error) -> StoreError {
        let (kind, detail) = (kind_of(error), one_line(&error.to_string()));
        let is_denied = matches!(error, Error::PermissionDenied { .. } | Error::Unauthenticated { .. })
            || kind == Some(io::ErrorKind::PermissionDenied);
        if kind == Some(io::ErrorKind::StorageFull) {
            return StoreError::Full { path: self.address.clone() };
        }
        if is_denied && self.is_directory {
            return refused(
                format!("the directory of content.url takes no file: {detail}"),
                "let the user of longhaul write there",
            );
        }
        if is_denied {
            return refused(
                format!("the storage of content in `{}` refuses: {detail}", self.address),
                "check the variables of content.access_key_env and content.secret_key_env, content.region, and the right \
                 to put, get and delete objects",
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
fn connected(bucket: &Bucket, variable: &dyn Fn(&str) -> Option<String>) -> Result<AmazonS3, StoreError> {
    let key = |setting: &str, name: &str| {
        let missing = || refused(format!("content.{setting} names `{name}`, which is not set"), "export it");
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
            backoff: BackoffConfig { init_backoff: PAUSE_MIN, max_backoff: PAUSE_MAX, base: 2.0 },
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_MAX,
        })
        // Not every server has the request that deletes many.
        .with_disable_bulk_delete(true)
        .with_http_connector(transport);
    if let Some(endpoint) = &bucket.endpoint {
        builder = builder.with_endpoint(endpoint.as_str().trim_end_matches('/'));
    }
    builder.build().map_err(|error| unfit(one_line(&error.to_string())))
}

/// The longest time for an operation that transfers so many bytes.
fn limit(bytes: usize) -> Duration {
    OPERATION_MAX.saturating_add(transfer(bytes))
}

/// The kind of the system's error below one of the storage.
fn kind_of(error: &Error) -> Option<io::ErrorKind> {
    let mut cause = error.source();
    while let Some(next) = cause {
        if let Some(found) = next.downcast_ref::<io::Error>() {
            return Some(found.kind());
        }
        cause = next.source();
    }
    None
}

/// A text in one line, cut where it is long.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(DETAIL_CHARS_MAX) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0, "nothing is left behind");
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
        let config = ContentConfig {
            endpoint: Some("http://127.0.0.1:1".into()),
            access_key_env: Some("ID".into()),
            secret_key_env: Some("KEY".into()),
            ..ContentConfig::at("s3://content/of/tests")
        };
        let said = ObjectClient::open(&config, &|name| (name == "ID").then(|| "id".into()));
        let said = said.map(drop).map_err(|error| error.to_string());
        assert_eq!(said, Err("content.secret_key_env names `KEY`, which is not set; export it".to_owned()));
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
