//! A cache of replies for equal requests. Off unless the operator enables it.
//!
//! A reply is found by a digest over everything that it can depend on: the request, the provider's whole table, and the
//! key. So no key, endpoint or setting ever sees a reply that another one paid for. A request with a temperature and
//! without a seed wants a new answer each time, so its reply is not cached. The files have mode 0600, are bounded in
//! size, and can be deleted at any time; a damaged one is no reply. Failures are never cached.

use crate::route;
use longhaul_core::model::{Cost, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener, Usage};
use longhaul_core::{Digest, InvocationId};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The largest cached reply, in bytes.
const REPLY_BYTES_MAX: u64 = 4 << 20;

/// A model with a cache of replies.
pub(crate) struct Cached {
    inner: Arc<dyn Model>,
    name: String,
    cache: Arc<ReplyCache>,
}

/// The cached replies of one table.
pub(crate) struct ReplyCache {
    directory: PathBuf,
    bytes_max: u64,
}

impl ReplyCache {
    /// `identity` is a digest of the provider's table and its key. All tables of a cache are in `directory` and share
    /// nothing.
    pub(crate) fn new(directory: &Path, identity: Digest, bytes_max: u64) -> Self {
        Self { directory: directory.join(identity.to_string()), bytes_max }
    }

    fn path(&self, request: &ModelRequest) -> PathBuf {
        self.directory.join(format!("{}.json", request.digest()))
    }

    fn get(&self, request: &ModelRequest) -> Option<ModelReply> {
        let path = self.path(request);
        let mut bytes = Vec::new();
        let file = fs::File::open(&path).ok()?;
        file.take(REPLY_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let reply = serde_json::from_slice(&bytes).ok()?;
        // The time of the last use decides what is evicted.
        let _ = fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(reply)
    }

    /// By a temporary name, so that a reader never sees half a reply.
    fn put(&self, request: &ModelRequest, reply: &ModelReply) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(reply)?;
        if bytes.len() as u64 > REPLY_BYTES_MAX.min(self.bytes_max) {
            return Ok(());
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.make_room(bytes.len() as u64)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(&bytes)?;
        file.persist(self.path(request))?;
        Ok(())
    }

    /// Removes the least recently used replies, until `bytes` more fit.
    fn make_room(&self, bytes: u64) -> std::io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.directory)?.flatten() {
            if let Ok(facts) = entry.metadata() {
                kept.push((facts.modified().unwrap_or(SystemTime::UNIX_EPOCH), facts.len(), entry.path()));
            }
        }
        kept.sort();
        let mut held: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, length, path) in kept {
            if held.saturating_add(bytes) <= self.bytes_max {
                break;
            }
            // Another process may have removed it.
            let _ = fs::remove_file(path);
            held = held.saturating_sub(length);
        }
        Ok(())
    }
}

impl Cached {
    pub(crate) fn new(inner: Arc<dyn Model>, name: &str, cache: ReplyCache) -> Self {
        Self { inner, name: name.to_owned(), cache: Arc::new(cache) }
    }
}

#[async_trait::async_trait]
impl Model for Cached {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn cost_most(&self, request: &ModelRequest) -> Usage {
        self.inner.cost_most(request)
    }

    /// A cached reply costs nothing; its tokens count as before, so that a run with a cache ends at the same limits as
    /// one without.
    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        if request.temperature.is_some_and(|temperature| temperature > 0.0) && request.seed.is_none() {
            return self.inner.ask(request, heard, cost).await;
        }
        let (cache, own) = (Arc::clone(&self.cache), request.clone());
        if let Ok(Some(mut reply)) = tokio::task::spawn_blocking(move || cache.get(&own)).await {
            heard(&reply.text);
            (reply.usage.cost_microdollars, reply.usage.cost_unknown) = (0.0, false);
            reply.notes.clear();
            return Ok(route::cached(reply, &self.name, self.info().id));
        }
        let reply = self.inner.ask(request, heard, cost).await?;
        let (cache, own, kept) = (Arc::clone(&self.cache), request.clone(), reply.clone());
        let put = tokio::task::spawn_blocking(move || cache.put(&own, &kept)).await;
        if let Ok(Err(error)) = put {
            tracing::warn!(model = %self.name, %error, "a reply could not be kept in the cache");
        }
        Ok(reply)
    }

    fn within(&self, invocation: &InvocationId, answered: &[Digest]) -> Option<Arc<dyn Model>> {
        let inner = self.inner.within(invocation, answered)?;
        Some(Arc::new(Self { inner, name: self.name.clone(), cache: Arc::clone(&self.cache) }))
    }
}

#[cfg(test)]
mod tests;
