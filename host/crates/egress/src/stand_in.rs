//! The stand-in of every destination during a crash test: a receiver on loopback that counts requests.
//!
//! With a stand-in, a request passes its grants as before, is sent to the receiver without TLS, and names its true
//! address in the header [`DESTINATION`]. No name is resolved, and no other address is connected to. A tunnel is
//! refused: its content could not be counted. Once set, a stand-in stays for the life of the process.

use crate::error::EgressError;
use http::HeaderValue;
use reqwest::{Request, Url};
use std::net::SocketAddr;
use std::sync::OnceLock;

/// The header with the address that a request was meant for.
pub const DESTINATION: &str = "x-longhaul-destination";

static STAND_IN: OnceLock<SocketAddr> = OnceLock::new();

/// Sends all requests of this process to `receiver` from now on. A stand-in that was set before stays.
pub fn send_all_to(receiver: SocketAddr) {
    let _ = STAND_IN.set(receiver);
}

/// The receiver of all requests of this process, if there is one.
#[must_use]
pub fn receiver() -> Option<SocketAddr> {
    STAND_IN.get().copied()
}

/// Turns a request to the receiver, with its destination in a header. One that cannot be turned is not sent: its host
/// is a real one.
pub(crate) fn turn(request: &mut Request, receiver: SocketAddr) -> Result<(), EgressError> {
    let meant = request.url().clone();
    let named = HeaderValue::from_str(meant.as_str()).map_err(|_| EgressError::BadAddress)?;
    let turned = address_at(receiver, &meant).ok_or(EgressError::BadAddress)?;
    request.headers_mut().insert(DESTINATION, named);
    *request.url_mut() = turned;
    Ok(())
}

/// The address in the place of `url`: the same path at the receiver.
fn address_at(receiver: SocketAddr, url: &Url) -> Option<Url> {
    // Another path could be read as part of the address before it.
    if !url.path().starts_with('/') {
        return None;
    }
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    Url::parse(&format!("http://{receiver}{}{query}", url.path())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::Method;

    #[test]
    fn a_request_is_turned_to_the_receiver_and_names_its_destination() {
        let meant = Url::parse("https://api.example.com/v1/pay?a=b").expect("an address");
        let mut request = Request::new(Method::POST, meant.clone());
        turn(&mut request, SocketAddr::from(([127, 0, 0, 1], 8_080))).expect("it is turned");
        assert_eq!(request.url().as_str(), "http://127.0.0.1:8080/v1/pay?a=b");
        assert_eq!(request.headers()[DESTINATION], meant.as_str());
    }

    #[test]
    fn a_request_that_cannot_be_turned_is_refused() {
        for address in ["data:,x", "data:@host.example/x"] {
            let mut request = Request::new(Method::GET, Url::parse(address).expect("an address"));
            let refused = turn(&mut request, SocketAddr::from(([127, 0, 0, 1], 8_080)));
            assert!(matches!(refused, Err(EgressError::BadAddress)), "{address}: {refused:?}");
        }
    }
}
