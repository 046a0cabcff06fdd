//! Content as objects: files of a directory that machines share, or objects of storage that speaks S3.
//!
//! [`ObjectClient`] puts, gets and deletes whole objects under names that are its caller's. It knows no digest, no
//! database and no run: what an object means, and when it may be deleted, is decided where the rows are. It lists
//! nothing, and it never looks for keys or for an endpoint anywhere but in its settings.
//!
//! | file | holds |
//! |---|---|
//! | `config.rs` | the table `[store.content]` |
//! | `place.rs` | the settings checked, the address taken apart |
//! | `object_client.rs` | puts, gets, deletions, with a bound and a meaning for each error |
//! | `outage.rs` | whether the place answers, so that its callers do not pile up |
//! | `transport.rs` | the HTTP client below S3, with the TLS trust of the host |

mod config;
mod object_client;
mod outage;
mod place;
mod transport;

pub use config::ContentConfig;
pub use object_client::ObjectClient;
