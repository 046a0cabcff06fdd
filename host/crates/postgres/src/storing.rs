//! Content on its way into a store and out of it: what is there is left out, what is large becomes an object, and what
//! nothing names is removed.
//!
//! An object is announced in a commit of its own before it is put, and kept by the commit that names it, so that a kill
//! in between leaves a row about it. A batch whose objects could not be put was not sent, and writes nothing.

use crate::blob;
use crate::content::{Encoded, Upload};
use crate::fold::Folded;
use crate::maintain::{self, Steps};
use crate::outside::{Generation, ObjectChange, ObjectKey};
use crate::postgres_store::PostgresStore;
use crate::read::StoredContent;
use crate::writer::WriteGuard;
use longhaul_core::Digest;
use longhaul_core::store::{Batch, Op, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Content from this length, in bytes, is compressed on a thread for blocking work: 64 KiB take zstd about 0.2 ms,
/// which other tasks on the same thread do not notice.
const ENCODE_INLINE_BYTES_MAX: usize = 64 << 10;

/// Content from this length, in bytes, is looked for before it is sent: a question costs a way to the server and back.
const KNOWN_BYTES_MIN: usize = 32 << 10;

/// Contents that are removed by one statement.
const REMOVED_MAX: usize = 4_096;

impl PostgresStore {
    /// Leaves out existing content, encodes the rest, and puts what becomes an object.
    ///
    /// Content that is there when it is looked for is there when the batch is written. The lock of all writers keeps a
    /// removal of this process away meanwhile, and a worker removes none. The removal of the owner is no danger to the
    /// batch of a worker: it begins only while no run is claimed by one, and ends before any is given away, and what
    /// workers commit without a run names no content.
    pub(crate) async fn encode(&self, batch: Batch, writing: &WriteGuard) -> Result<Encoded, StoreError> {
        let large = batch.ops.iter().filter_map(|op| match op {
            Op::Blob(digest, content) if self.is_looked_for(content.len()) => Some(*digest),
            _ => None,
        });
        let large: Vec<Digest> = large.collect();
        let known = if large.is_empty() { Vec::new() } else { self.known(large).await? };
        // Content that comes again in the batch is known, too.
        let mut known: BTreeSet<Digest> = known.into_iter().collect();
        let (mut encoded, mut uploads) = (Batch::new(), Vec::new());
        for op in batch.ops {
            match op {
                Op::Blob(digest, _) if known.contains(&digest) => {}
                Op::Blob(digest, content) => {
                    known.insert(digest);
                    let length = content.len();
                    let value = self.encode_blob(digest, content).await?;
                    if self.contents.is_outside(length) {
                        uploads.push(Upload { object: self.fresh(digest)?, length, value });
                    } else {
                        encoded.push(Op::Blob(digest, value));
                    }
                }
                op => encoded.push(op),
            }
        }
        let objects = self.upload(uploads, &mut encoded, writing).await?;
        Ok(Encoded { batch: encoded, objects })
    }

    /// Removes content that nothing names, and condemns its objects. No batch is written meanwhile.
    pub(crate) async fn remove(&self, dead: &[StoredContent], alone: &WriteGuard) -> Result<(), StoreError> {
        let now_ms = self.now_ms().await?;
        for some in dead.chunks(REMOVED_MAX) {
            let digests = some.iter().map(|content| content.digest).collect();
            let objects = some.iter().filter_map(|content| {
                let object = ObjectKey { digest: content.digest, generation: content.outside? };
                Some(ObjectChange::condemn(object, now_ms))
            });
            self.send(Folded::removal(digests, objects.collect()), Arc::clone(alone)).await?;
        }
        Ok(())
    }

    /// Deletes objects that nothing has named for the grace, and condemns those of writers that ended before they named
    /// them. Nothing is done without settings of objects.
    pub(crate) async fn delete_objects(&self) -> Result<(), StoreError> {
        let Some(grace) = self.contents.objects.as_ref().map(|objects| objects.grace) else { return Ok(()) };
        let mut next = Some(Vec::new());
        while let Some(after) = next {
            let contents = Arc::clone(&self.contents);
            let looked = self.ask(move |_| async move { maintain::object_steps(&contents, after, grace).await });
            let Steps { over, condemned, next: following } = looked.await?;
            let (objects, forgotten): (Vec<_>, Vec<_>) = over.into_iter().unzip();
            if !objects.is_empty() {
                let contents = Arc::clone(&self.contents);
                self.ask(move |_| async move { contents.delete_all(objects).await }).await?;
                self.change_objects(forgotten).await?;
            }
            for change in condemned {
                self.change_objects(vec![change]).await?;
            }
            next = following;
        }
        Ok(())
    }

    /// Changes rows of objects, all of them or none.
    async fn change_objects(&self, changes: Vec<ObjectChange>) -> Result<(), StoreError> {
        let nothing: WriteGuard = Arc::new(());
        match self.send(Folded::default().with_objects(changes), nothing).await {
            // Somebody else changed a row meanwhile: a writer that kept it, or another removal.
            Err(why) if why == self.server.place.overdue() => Ok(()),
            done => done,
        }
    }

    /// Announces and puts objects, and adds the rows that name them; returns the changes that keep them.
    async fn upload(
        &self,
        uploads: Vec<Upload>,
        encoded: &mut Batch,
        writing: &WriteGuard,
    ) -> Result<Vec<ObjectChange>, StoreError> {
        if uploads.is_empty() {
            return Ok(Vec::new());
        }
        let now_ms = self.now_ms().await?;
        let begun = uploads.iter().map(|upload| ObjectChange::begin(upload.object, now_ms)).collect();
        for upload in &uploads {
            encoded.push(Op::Blob(upload.object.digest, upload.marker()));
        }
        let kept = uploads.iter().map(|upload| upload.kept(now_ms)).collect();
        self.send(Folded::default().with_objects(begun), Arc::clone(writing)).await?;
        let contents = Arc::clone(&self.contents);
        self.ask(move |_| async move { contents.put_all(uploads).await }).await?;
        Ok(kept)
    }

    /// True for content that is looked for before it is sent.
    fn is_looked_for(&self, bytes: usize) -> bool {
        bytes >= KNOWN_BYTES_MIN || self.contents.is_outside(bytes)
    }

    fn fresh(&self, digest: Digest) -> Result<ObjectKey, StoreError> {
        let drawn = Generation::fresh();
        let generation = drawn.map_err(|why| self.server.place.failed(format!("no random number: {why}")))?;
        Ok(ObjectKey { digest, generation })
    }

    async fn encode_blob(&self, digest: Digest, content: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        debug_assert_eq!(Digest::of(&content), digest, "content is kept under its own digest");
        let value = match tokio::runtime::Handle::try_current() {
            Ok(runtime) if content.len() > ENCODE_INLINE_BYTES_MAX => {
                let encoded = runtime.spawn_blocking(move || blob::encode(&content)).await;
                encoded.map_err(|stopped| self.server.place.failed(stopped.to_string()))?
            }
            _ => blob::encode(&content),
        };
        value.map_err(|why| self.server.place.failed(why))
    }

    async fn known(&self, digests: Vec<Digest>) -> Result<Vec<Digest>, StoreError> {
        self.ask(|reader| async move { reader.known(digests).await }).await
    }

    async fn now_ms(&self) -> Result<u64, StoreError> {
        self.ask(|reader| async move { reader.now_ms().await }).await
    }
}
