//! A relay from a port of the sandbox's own loopback to a Unix socket of the host.
//!
//! Programs address proxies by a port and not by a socket's path. The relay decides nothing: each connection is passed
//! to the host unchanged. Called inside of the sandbox, whose port nothing outside can reach.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Connections at the same time; a browser holds 32 to one proxy.
const CONNECTIONS_MAX: usize = 128;

/// Listens on a port of loopback and passes each connection to `socket`, in threads of its own. Returns the port.
///
/// # Errors
/// When there is no loopback.
pub fn relay_to(socket: &Path) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let socket: Arc<PathBuf> = Arc::new(socket.to_owned());
    thread::Builder::new().spawn(move || relay_all(&listener, &socket))?;
    Ok(port)
}

fn relay_all(listener: &TcpListener, socket: &Arc<PathBuf>) {
    let open = Arc::new(AtomicUsize::new(0));
    for program in listener.incoming().filter_map(Result::ok) {
        if open.load(Ordering::SeqCst) >= CONNECTIONS_MAX {
            continue;
        }
        open.fetch_add(1, Ordering::SeqCst);
        let (counted, socket) = (Arc::clone(&open), Arc::clone(socket));
        let started = thread::Builder::new().spawn(move || {
            // The program sees an interrupted connection.
            let _ = relay(&program, &socket);
            counted.fetch_sub(1, Ordering::SeqCst);
        });
        if started.is_err() {
            open.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

fn relay(program: &TcpStream, socket: &Path) -> io::Result<()> {
    let host = UnixStream::connect(socket)?;
    let (mut from_program, mut to_host) = (program.try_clone()?, host.try_clone()?);
    let there = thread::Builder::new().spawn(move || {
        let _ = io::copy(&mut from_program, &mut to_host);
        let _ = to_host.shutdown(Shutdown::Write);
    })?;
    let (mut from_host, mut to_program) = (host, program.try_clone()?);
    let _ = io::copy(&mut from_host, &mut to_program);
    let _ = program.shutdown(Shutdown::Both);
    let _ = there.join();
    Ok(())
}
