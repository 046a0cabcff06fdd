//! Reports the state of the server to systemd, or another supervisor, by three words of the protocol of `sd_notify`.
//!
//! Without `NOTIFY_SOCKET` it does nothing. A report that cannot be sent is logged, and never ends the server.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Reports a state, such as `READY=1`.
pub fn tell(state: &str) {
    let Some(place) = longhaul_home::variable(VARIABLE) else { return };
    let told = UnixDatagram::unbound().and_then(|socket| {
        let address = match place.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(&place)?,
        };
        socket.send_to_addr(state.as_bytes(), &address)
    });
    if let Err(error) = told {
        tracing::warn!("the status of the server cannot be sent to {VARIABLE}: {error}");
    }
}

/// Reports that the configuration is being read again; [`tell`] of `READY=1` reports the end of that.
pub fn tell_reloading() {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
}
