//! Outgoing network access of tools and MCP servers: allowed destinations, their gates, and secrets.
//!
//! A request passes its gates in order: the grant (scheme, host, port, method), the form of its address, the addresses
//! of the name. The name is resolved once, every address is checked, and only checked addresses are connected to. A
//! redirect is followed only for callers in the host, and each hop passes all gates again. There is no proxy of the
//! environment, no cookie, no retry, no connection kept for the next request. Secrets are put into a request behind the
//! gates and redacted in the response before any caller sees it. A program that makes requests of its own, such as a
//! browser, gets a proxy behind the same gates.
//!
//! [`stand_in`] is the receiver of all requests during a crash test.
//!
//! [`tls`] is the trust of every HTTP client of the host, also of those that pass no gate, such as the clients of
//! models; [`server_connection`] is the client of our own servers; [`with_proxy_named`] is for the errors of clients
//! that use a proxy of the environment.

mod address;
mod body;
mod decode;
mod environment_proxy;
mod error;
mod fetch;
mod guard;
mod proxy;
mod refused_request;
mod secret;
mod secret_value;
pub mod server_connection;
pub mod stand_in;
mod stream_redactor;
#[cfg(test)]
mod tests;
pub mod tls;

pub use address::{Resolve, System, special};
pub use body::Fetched;
pub use decode::Cleaner;
pub use environment_proxy::with_proxy_named;
pub use error::EgressError;
pub use guard::{CheckedRoute, FIELD_BYTES_MAX, Guard, RequestLimits};
pub use proxy::{Proxy, listen_in};
pub use refused_request::RefusedRequest;
pub use secret::{HeaderSecret, SecretPlaceholders, SecretRedactor};
pub use secret_value::{NotASecret, SHOWN, Secret};
pub use stream_redactor::StreamRedactor;
