//! A pooler on this machine, as a client sees one that takes no settings of a session: PgBouncer refuses them.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// The code of a client's question for TLS, in the place of the version of the protocol.
const TLS: u32 = 80_877_103;

/// Starts a pooler of a server on this machine; returns its port. It ends with the program.
pub fn start(target: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            // A client that is gone ends it.
            std::thread::spawn(move || drop(serve(client, target)));
        }
    });
    port
}

fn serve(mut client: TcpStream, target: u16) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut start = first(&mut client)?;
    if start[4..8] == TLS.to_be_bytes() {
        client.write_all(b"N")?;
        start = first(&mut client)?;
    }
    if start.windows(9).any(|part| part == b"\0options\0") {
        let fields = b"SFATAL\0C08P01\0Munsupported startup parameter in options: statement_timeout\0\0";
        let length = u32::try_from(fields.len() + 4).expect("short").to_be_bytes();
        return client.write_all(&[&b"E"[..], &length, fields].concat());
    }
    let mut server = TcpStream::connect(("127.0.0.1", target))?;
    server.set_nodelay(true)?;
    server.write_all(&start)?;
    let (mut answers, mut to_client) = (server.try_clone()?, client.try_clone()?);
    std::thread::spawn(move || {
        // The end of either side is the end of both.
        let _ = io::copy(&mut answers, &mut to_client);
        let _ = to_client.shutdown(std::net::Shutdown::Both);
    });
    let copied = io::copy(&mut client, &mut server);
    server.shutdown(std::net::Shutdown::Both)?;
    copied.map(drop)
}

/// The first message of a client: its length, which counts itself, and the rest.
fn first(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let mut message = vec![0; u32::from_be_bytes(length) as usize];
    message[..4].copy_from_slice(&length);
    client.read_exact(&mut message[4..])?;
    Ok(message)
}
