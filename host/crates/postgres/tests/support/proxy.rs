//! A TCP proxy on this machine that holds back what one side sends, as a network that is cut in one direction does.
//!
//! Bytes that are held back arrive once the cut is healed: late, whole and in order, as a network delivers what it
//! retries.

#![allow(dead_code, reason = "each test uses its part")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The directions in which nothing passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    Nothing,
    ToServer,
    ToClient,
    Both,
}

impl Cut {
    fn holds(self, direction: Self) -> bool {
        self == direction || self == Self::Both
    }
}

/// A proxy. It takes no more connections after its drop.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    target: u16,
    cut: Cut,
    /// Sides of connections that have sent something which is held back.
    held: usize,
    is_open: bool,
}

impl Proxy {
    /// A proxy to a server on this machine.
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let state = Mutex::new(State { target, cut: Cut::Nothing, held: 0, is_open: true });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accept(&listener, &accepting));
        Self { port, shared }
    }

    /// An address of a server, through the proxy.
    pub fn url(&self, url: &str, port: u16) -> String {
        url.replace(&format!(":{port}/"), &format!(":{}/", self.port))
    }

    /// Holds back what is sent in these directions, from now on, and delivers what was held back in the others.
    pub fn cut(&self, cut: Cut) {
        self.shared.change(|state| state.cut = cut);
    }

    /// The number of sides of connections that have sent something which is held back.
    pub fn held(&self) -> usize {
        self.shared.state().held
    }

    /// Sends new connections to another server.
    pub fn redirect(&self, target: u16) {
        self.shared.change(|state| state.target = target);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.change(|state| (state.cut, state.is_open) = (Cut::Nothing, false));
        // Ends the wait for the next connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn wait_while_cut(&self, direction: Cut) {
        let mut state = self.state();
        state.held += 1;
        let waited = self.changed.wait_while(state, |state| state.cut.holds(direction));
        waited.unwrap_or_else(PoisonError::into_inner).held -= 1;
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        let (target, is_open) = {
            let state = shared.state();
            (state.target, state.is_open)
        };
        if !is_open {
            return;
        }
        // A server that is away closes the connection of the client.
        if let Ok(server) = TcpStream::connect(("127.0.0.1", target)) {
            join(client, server, shared);
        }
    }
}

fn join(client: TcpStream, server: TcpStream, shared: &Arc<Shared>) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("set");
    }
    let copies = (client.try_clone().expect("a descriptor"), server.try_clone().expect("a descriptor"));
    let (up, down) = (Arc::clone(shared), Arc::clone(shared));
    std::thread::spawn(move || pass(client, server, Cut::ToServer, &up));
    std::thread::spawn(move || pass(copies.1, copies.0, Cut::ToClient, &down));
}

/// Passes bytes until one side closes, and then the end.
fn pass(mut from: TcpStream, mut to: TcpStream, direction: Cut, shared: &Shared) {
    let mut bytes = [0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        shared.wait_while_cut(direction);
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    shared.wait_while_cut(direction);
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
