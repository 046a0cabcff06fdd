//! The form in which parts of a report are published: that of the wire types. It decides nothing about what is
//! reported.

use serde::{Serialize, Serializer};

/// Serializes a value in its published form.
pub fn published<T: Clone, W: From<T> + Serialize, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    W::from(value.clone()).serialize(serializer)
}
