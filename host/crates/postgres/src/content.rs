//! Content wherever it is: in its row, or in the object that its row names.
//!
//! The value of an object is encoded as that of a row. A row whose object is gone is read once more, since both may have
//! been replaced meanwhile; what is missing then is damage.

use crate::blob::{self, Marker};
use crate::config::refused;
use crate::connect::Server;
use crate::outside::{ObjectChange, ObjectKey, ObjectState};
use crate::read::Reader;
use futures_util::future::try_join_all;
use longhaul_core::Digest;
use longhaul_core::store::{Batch, StoreError};
use longhaul_objects::{ContentConfig, ObjectClient};
use std::sync::Arc;
use std::time::Duration;

/// Objects that are read or written at once by one caller.
const AT_ONCE: usize = 8;

/// Objects outside of the database, with their settings.
pub(crate) struct Objects {
    client: ObjectClient,
    bytes_min: usize,
    pub(crate) grace: Duration,
}

impl Objects {
    /// The objects of settings. Nothing is sent yet.
    pub(crate) fn open(config: &ContentConfig, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, StoreError> {
        let bytes_min = usize::try_from(config.bytes_min).unwrap_or(usize::MAX);
        Ok(Self { client: ObjectClient::open(config, variable)?, bytes_min, grace: config.grace() })
    }
}

/// A batch whose content is encoded, or is an object.
pub(crate) struct Encoded {
    pub(crate) batch: Batch,
    /// The changes that keep its objects.
    pub(crate) objects: Vec<ObjectChange>,
}

/// Encoded content that becomes an object.
pub(crate) struct Upload {
    pub(crate) object: ObjectKey,
    /// The length of the content before it was encoded.
    pub(crate) length: usize,
    pub(crate) value: Vec<u8>,
}

impl Upload {
    /// The value of the row that names the object.
    pub(crate) fn marker(&self) -> Vec<u8> {
        blob::encode_marker(&Marker {
            length: self.length,
            stored: self.value.len(),
            generation: self.object.generation,
        })
    }

    /// The change of the object's row with the row that names it.
    pub(crate) fn kept(&self, begun_ms: u64) -> ObjectChange {
        ObjectChange::from_to(self.object, ObjectState::Uploading(begun_ms), ObjectState::Kept)
    }
}

/// The content of a store.
pub(crate) struct Contents {
    pub(crate) server: Arc<Server>,
    pub(crate) reader: Arc<Reader>,
    /// None where settings name no place for them.
    pub(crate) objects: Option<Objects>,
}

impl Contents {
    /// True for content that becomes an object.
    pub(crate) fn is_outside(&self, bytes: usize) -> bool {
        self.objects.as_ref().is_some_and(|objects| bytes >= objects.bytes_min)
    }

    /// Encoded content; none where there is none.
    pub(crate) async fn get(&self, digest: Digest) -> Result<Option<Vec<u8>>, StoreError> {
        match self.reader.blob(digest).await? {
            Some(value) => self.followed(digest, value).await,
            None => Ok(None),
        }
    }

    /// Encoded contents, in the order of their digests.
    pub(crate) async fn get_all(&self, digests: Vec<Digest>) -> Result<Vec<(Digest, Vec<u8>)>, StoreError> {
        let mut rows = self.reader.contents(digests).await?;
        let mut found = Vec::with_capacity(rows.len());
        while !rows.is_empty() {
            let some = take_some(&mut rows);
            let digests: Vec<Digest> = some.iter().map(|(digest, _)| *digest).collect();
            let values = try_join_all(some.into_iter().map(|(digest, value)| self.followed(digest, value))).await?;
            // One that was removed meanwhile is none.
            found.extend(digests.into_iter().zip(values).filter_map(|(digest, value)| Some((digest, value?))));
        }
        Ok(found)
    }

    /// Puts objects, whose rows say already that they are coming.
    pub(crate) async fn put_all(&self, mut uploads: Vec<Upload>) -> Result<(), StoreError> {
        let objects = self.place()?;
        while !uploads.is_empty() {
            let puts = take_some(&mut uploads)
                .into_iter()
                .map(|Upload { object, value, .. }| async move { objects.client.put(&object.name(), value).await });
            try_join_all(puts).await?;
        }
        Ok(())
    }

    /// Deletes objects, where they exist.
    pub(crate) async fn delete_all(&self, mut dead: Vec<ObjectKey>) -> Result<(), StoreError> {
        let objects = self.place()?;
        while !dead.is_empty() {
            let deletions = take_some(&mut dead)
                .into_iter()
                .map(|object| async move { objects.client.delete(&object.name()).await });
            try_join_all(deletions).await?;
        }
        Ok(())
    }

    /// The value of a row, or of the object that it names.
    async fn followed(&self, digest: Digest, mut value: Vec<u8>) -> Result<Option<Vec<u8>>, StoreError> {
        loop {
            let Some(marker) = blob::marker(&value) else { return Ok(Some(value)) };
            let (objects, object) = (self.place()?, ObjectKey { digest, generation: marker.generation });
            if let Some(found) = objects.client.get(&object.name(), marker.stored).await? {
                return Ok(Some(found));
            }
            match self.reader.blob(digest).await? {
                None => return Ok(None),
                Some(again) if again == value => return Err(self.missing(objects, object)),
                Some(again) => value = again,
            }
        }
    }

    fn place(&self) -> Result<&Objects, StoreError> {
        self.objects.as_ref().ok_or_else(|| {
            refused(
                format!("the store in `{}` has content outside of the database", self.server.place.0),
                "write [store.content] again, with the url that it had",
            )
        })
    }

    fn missing(&self, objects: &Objects, object: ObjectKey) -> StoreError {
        self.server.place.damaged(format!(
            "blob {} is not in {} as {}; see that content.url of [store] is where it was written",
            object.digest.short(),
            objects.client.address(),
            object.name()
        ))
    }
}

/// Takes as many as are read or written at once.
fn take_some<T>(all: &mut Vec<T>) -> Vec<T> {
    let rest = all.split_off(all.len().min(AT_ONCE));
    std::mem::replace(all, rest)
}
