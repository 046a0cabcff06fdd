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
mod tests;
