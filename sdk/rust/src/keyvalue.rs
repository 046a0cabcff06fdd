//! The private, durable key-value space of a tool or a memory backend: the contract's functions, and JSON
//! values and whole listings on top of them.
//!
//! A key has at most 1 024 bytes and a value 4 MiB; beyond that `set` gives the limit by its name.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
pub use crate::bindings::keyvalue::{KeyPage, KeyvalueError, delete, exists, get, list_keys, set};

/// The value of `key`, which [`set_json`] wrote.
///
/// # Errors
/// Those of `get`; [`Error::Invalid`] when the value is not a `T`.
pub fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    let read = |bytes: Vec<u8>| {
        let wrong = |error| Error::Invalid(crate::json::cut(&format!("the value of the key `{key}`: {error}"), 500));
        serde_json::from_slice(&bytes).map_err(wrong)
    };
    get(key)?.map(read).transpose()
}

/// Keeps `value` under `key`, in the place of what was there.
///
/// # Errors
/// Those of `set`.
pub fn set_json(key: &str, value: &impl Serialize) -> Result<(), Error> {
    Ok(set(key, &serde_json::to_vec(value)?)?)
}

/// All keys that start with `prefix`, page after page, in the order of their code points.
///
/// # Errors
/// Those of `list_keys`.
pub fn keys(prefix: &str) -> Result<Vec<String>, Error> {
    let (mut keys, mut cursor) = (Vec::new(), None);
    loop {
        let page = list_keys(prefix, cursor.as_deref())?;
        keys.extend(page.keys);
        if page.cursor.is_none() {
            break;
        }
        cursor = page.cursor;
    }
    keys.sort_unstable();
    Ok(keys)
}
