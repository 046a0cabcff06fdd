//! Long texts of a stored state as content by their digests, so that a goal that every task contains is stored once.

use longhaul_core::fault::{self, Context as _};
use longhaul_core::store::{Batch, Store};
use serde_json::Value;

/// Texts up to this size, in bytes, stay where they are.
const TEXT_BYTES_MAX: usize = 1_024;

/// The first character of a text that stands for content by its digest. A text that starts with the same character for
/// reasons of its own has it twice.
const MARK: char = '\0';
const CONTENT: &str = "\0content:";

/// The content of a digest, as it stands in a row.
pub(super) fn content(store: &dyn Store, digest: &str) -> fault::Result<Vec<u8>> {
    store.blob(&digest.parse()?)?.context("a text of it is missing")
}

/// Replaces long texts by digests of content.
pub(super) fn put_away(value: &mut Value, batch: &mut Batch) {
    match value {
        Value::String(text) if text.len() > TEXT_BYTES_MAX => {
            let digest = batch.blob(std::mem::take(text).into_bytes());
            *text = format!("{CONTENT}{digest}");
        }
        Value::String(text) if text.starts_with(MARK) => text.insert(0, MARK),
        Value::Array(items) => items.iter_mut().for_each(|item| put_away(item, batch)),
        Value::Object(fields) => fields.values_mut().for_each(|field| put_away(field, batch)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Undoes [`put_away`].
pub(super) fn fetch(value: &mut Value, store: &dyn Store) -> fault::Result<()> {
    match value {
        Value::String(text) => {
            if let Some(digest) = text.strip_prefix(CONTENT) {
                *text = String::from_utf8(content(store, digest)?)?;
            } else if text.starts_with(MARK) {
                text.remove(0);
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fetch(item, store)),
        Value::Object(fields) => fields.values_mut().try_for_each(|field| fetch(field, store)),
        Value::Number(_) | Value::Bool(_) | Value::Null => Ok(()),
    }
}
