//! Says to systemd, or who else started the server, how it stands: `sd_notify`'s protocol, of which three words are needed.
//!
//! Without `NOTIFY_SOCKET` nobody wants to know. What cannot be said is no reason to end.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Says it.
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
        tracing::warn!("{VARIABLE} cannot be told how the server stands: {error}");
    }
}

/// Says that the configuration is read again; [`tell`] of `READY=1` says that it was.
pub fn tell_reloading() {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
    tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
}
