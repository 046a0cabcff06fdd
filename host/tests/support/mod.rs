//! What several tests share: an author with the program, guests made of text, services that are not there, a
//! laboratory to run both in.
//!
//! Nothing here asserts what a guest does; that is the tests' affair.

#![allow(dead_code, reason = "each test uses its part")]

pub mod author;
pub mod guest;
pub mod lab;

use std::path::{Path, PathBuf};

/// The top of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package is in a folder of the repository").to_owned()
}
