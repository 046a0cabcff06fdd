//! A small instruct model from a GGUF file, on the CPU, without a line of C++.
//!
//! [`protocol`] is the protocol between a host and the child process that holds the model; it depends on no tensor
//! library. The feature `inference` adds the model ([`LoadedModel`]) and the child's side ([`serve`]). This crate never
//! opens a socket, never downloads a file, and reads no file but the given GGUF, which it does not trust: counts, sizes
//! and offsets are checked against the file's length before anything is allocated.

pub mod protocol;

#[cfg(feature = "inference")]
mod error;
#[cfg(feature = "inference")]
mod gguf;
#[cfg(feature = "inference")]
mod grammar;
#[cfg(feature = "inference")]
mod model;
#[cfg(feature = "inference")]
mod output;
#[cfg(feature = "inference")]
mod sampler;
#[cfg(feature = "inference")]
mod serve;
#[cfg(feature = "inference")]
mod session;
#[cfg(feature = "inference")]
mod template;
#[cfg(all(test, feature = "inference"))]
mod test_model;
#[cfg(feature = "inference")]
mod tokenizer;
#[cfg(feature = "inference")]
mod transformer;

#[cfg(feature = "inference")]
pub use error::LlamaError;
#[cfg(feature = "inference")]
pub use model::{LoadOptions, LoadedModel};
#[cfg(feature = "inference")]
pub use serve::{serve, serve_model};
