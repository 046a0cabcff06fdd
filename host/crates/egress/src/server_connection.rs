//! The HTTP client for another server of ours: that of a command line with `--server`, and that of a server which
//! forwards. It follows no redirect, repeats nothing and sends no referrer. An answer may take as long as its
//! operation, so there is no limit on time for it; the connection is looked at meanwhile. It opens no connection.

use crate::tls;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use std::time::Duration;

/// Unanswered probes after which a connection is over.
const PROBES_MAX: u32 = 3;

/// The times of a connection to another server.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionTimes {
    /// Longest time to make it.
    pub connect: Duration,
    /// Longest time for which it is kept unused: less than the other end keeps one.
    pub idle: Duration,
    /// Time without a byte after which the other end is asked whether it lives, and between such probes.
    pub probe: Duration,
}

/// A client to be completed. With `secure`, it trusts the machine's authorities.
///
/// # Errors
/// When the machine has no authorities that can be read.
pub fn builder(secure: bool, times: ConnectionTimes) -> Result<ClientBuilder, rustls::Error> {
    let tls = tls::config(secure)?;
    Ok(Client::builder()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .connect_timeout(times.connect)
        .pool_idle_timeout(times.idle)
        .tcp_keepalive(times.probe)
        .tcp_keepalive_interval(times.probe)
        .tcp_keepalive_retries(PROBES_MAX)
        .tls_backend_preconfigured(tls))
}
