//! Packages of Python for the sandbox: resolved by pip or uv, locked by digest, laid out in the cache.
//!
//! pip chooses wheels and fetches them, and none of their code runs here. A folder in the cache holds the modules of
//! one lock; its name is a digest of the lock, and nothing in it is ever changed, so a job that sees the folder is told
//! by its path which packages it had. What the cache has needs no network. Wheels are checked against the lock each
//! time that they are laid out; compiled modules are refused.

mod cache;
mod error;
mod pip;

pub use cache::PackageCache;
pub use error::PackagesError;
