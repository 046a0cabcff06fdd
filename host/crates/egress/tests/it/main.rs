//! Attempts to get around the guard and the proxy, with real servers on loopback.

mod attempts;
mod proxy;
mod server;
