//! The private, durable key-value space of a tool or a memory backend: the functions of the contract, and functions for
//! JSON values and for whole listings.
//!
//! A key has at most 1 024 bytes and a value at most 4 MiB; otherwise `set` returns the limit.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Error;
pub use crate::bindings::keyvalue::{KeyPage, KeyvalueError, delete, exists, get, list_keys, set};

/// Returns the JSON value of a key. None: the key does not exist.
///
/// # Errors
/// The errors of `get`; [`Error::Invalid`] when the value is not a `T`.
pub fn get_json<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    let read = |bytes: Vec<u8>| {
        let wrong = |error| Error::Invalid(crate::json::cut(&format!("the value of the key `{key}`: {error}"), 500));
        serde_json::from_slice(&bytes).map_err(wrong)
    };
    get(key)?.map(read).transpose()
}

/// Sets the value of a key to a JSON value.
///
/// # Errors
/// The errors of `set`.
pub fn set_json(key: &str, value: &impl Serialize) -> Result<(), Error> {
    Ok(set(key, &serde_json::to_vec(value)?)?)
}

/// Lists all keys that start with `prefix`, in the order of their code points.
///
/// # Errors
/// The errors of `list_keys`.
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
