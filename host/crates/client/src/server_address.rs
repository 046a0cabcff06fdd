//! The address of a server, and the token for it. A token goes to no address at which others could read it on its way,
//! and is in no text.

use longhaul_core::fault::{self, Fault};
use longhaul_core::text::printable;
use reqwest::Url;
use reqwest::header::HeaderValue;
use std::fmt;
use std::net::IpAddr;

/// Most bytes of an address that an error repeats.
const SHOWN_BYTES_MAX: usize = 200;

/// Most bytes of a token. Those of Longhaul have far less.
const TOKEN_BYTES_MAX: usize = 1_000;

/// The address of a server: `https`, or `http` on this machine, a host, and the path of a proxy where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress(Url);

impl ServerAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// It is none, or one to which no token may be sent. The text does not repeat a password in it.
    pub fn parse(text: &str) -> fault::Result<Self> {
        let wrong = || {
            let shown = printable(text, SHOWN_BYTES_MAX);
            Fault::invalid(format!("`{shown}` is no address of a server; write for example https://longhaul.example"))
        };
        if text.contains('@') {
            return Err(Fault::invalid(
                "the address of a server has no user and no password; the token comes from LONGHAUL_TOKEN or --token-file",
            ));
        }
        let url = Url::parse(text).map_err(|_| wrong())?;
        if url.host_str().is_none_or(str::is_empty) || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong());
        }
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if is_loopback(&url) => Ok(Self(url)),
            "http" => Err(Fault::invalid(format!(
                "`{}` would send the token readable across the network; write https://, or http:// with an address of this \
                 machine, such as the end of a tunnel: ssh -L 7717:127.0.0.1:7717 HOST",
                printable(text, SHOWN_BYTES_MAX)
            ))),
            _ => Err(wrong()),
        }
    }

    /// True when it is on this machine, where no proxy and no TLS is needed.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.0)
    }

    /// True when its connections are encrypted.
    pub fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// The address of a path below it.
    pub fn below(&self, parts: &[&str]) -> Url {
        let mut url = self.0.clone();
        // An address of `http` and `https` always takes paths.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(parts);
        }
        url
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A token of a server's HTTP API.
#[derive(Clone)]
pub struct ServerToken(HeaderValue);

impl ServerToken {
    /// Reads a token, such as the content of a file. `origin` names the place of the text.
    ///
    /// # Errors
    /// The text is no token. The error does not repeat it.
    pub fn parse(text: &str, origin: &str) -> fault::Result<Self> {
        let text = text.trim();
        let is_token =
            !text.is_empty() && text.len() <= TOKEN_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
        let header = HeaderValue::from_str(&format!("Bearer {text}")).ok().filter(|_| is_token);
        let mut header = header.ok_or_else(|| {
            Fault::invalid(format!(
                "{origin} holds no token; it is the one line that `longhaul token add NAME --scope run` prints on the \
                 server's machine"
            ))
        })?;
        header.set_sensitive(true);
        Ok(Self(header))
    }

    /// The value of the header `Authorization`.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for ServerToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[token]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let refusal = ServerAddress::parse(text).map(|address| address.to_string()).expect_err(text);
        assert!(refusal.to_string().contains(words), "{text}: {refusal}");
    }

    #[test]
    fn a_server_is_reached_by_tls_or_on_this_machine() {
        for taken in [
            "https://longhaul.example",
            "https://longhaul.example:8443/longhaul",
            "http://127.0.0.1:7717",
            "http://localhost:7717",
            "http://[::1]:7717",
        ] {
            assert_eq!(ServerAddress::parse(taken).expect(taken).to_string(), taken);
        }
        for plain in ["http://longhaul.example", "http://127.0.0.1.evil.example", "http://10.0.0.1:7717"] {
            refused(plain, "would send the token readable");
        }
        for none in ["", "longhaul.example", "127.0.0.1:7717", "ftp://longhaul.example", "file:///etc", "https://"] {
            refused(none, "is no address of a server; write for example https://");
        }
        for more in ["https://longhaul.example/?token=1", "https://longhaul.example/#a"] {
            refused(more, "is no address of a server");
        }
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_repeated() {
        let refusal = ServerAddress::parse("https://me:hunter2@longhaul.example").expect_err("refused").to_string();
        assert!(refusal.contains("LONGHAUL_TOKEN") && !refusal.contains("hunter2"), "{refusal}");
    }

    #[test]
    fn paths_stand_below_that_of_a_proxy_and_names_cannot_leave_them() {
        let below =
            |address: &str, parts: &[&str]| ServerAddress::parse(address).expect("one").below(parts).to_string();
        assert_eq!(below("http://127.0.0.1:7717", &["api", "v1", "runs"]), "http://127.0.0.1:7717/api/v1/runs");
        assert_eq!(below("https://a.example/longhaul/", &["api"]), "https://a.example/longhaul/api");
        assert_eq!(below("https://a.example", &["api", "a/../b?c#d"]), "https://a.example/api/a%2F..%2Fb%3Fc%23d");
    }

    #[test]
    fn a_token_is_in_no_text_and_what_is_none_is_refused_without_it() {
        let token = ServerToken::parse("lh_1_secret\n", "LONGHAUL_TOKEN").expect("a token");
        assert_eq!(token.header().as_bytes(), b"Bearer lh_1_secret");
        assert!(!format!("{token:?} {:?}", token.header()).contains("secret"));
        let long = "x".repeat(2_000);
        for none in ["", " \n", "two words", "lh_1\nlh_2", "lh_\u{e9}", long.as_str()] {
            let refusal = ServerToken::parse(none, "the file `t`").expect_err("refused").to_string();
            assert!(refusal.starts_with("the file `t` holds no token; "), "{refusal}");
        }
    }
}
