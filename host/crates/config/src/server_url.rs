//! The address of a server of Longhaul, by which other servers of the same database reach it.
//!
//! It is a scheme, a host and a port, and refuses everything else: paths of requests come behind it. It is read from
//! `server.toml`, and from a row of the database, where it is the word of another machine.

use reqwest::Url;
use std::fmt;
use std::net::IpAddr;

/// Longest text of an address, in bytes. A host name has at most 253.
const BYTES_MAX: usize = 300;

/// The address of a server: `http` or `https`, a host, and perhaps a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl(Url);

impl ServerUrl {
    /// Reads an address. None for any other text, such as one with a user, a path or a query, and for the addresses
    /// that stand for all of a machine's own.
    pub fn parse(text: &str) -> Option<Self> {
        // The parser would take out line breaks and tabs.
        if text.len() > BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) || text.contains('@') {
            return None;
        }
        let url = Url::parse(text).ok()?;
        let is_place = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let is_web = matches!(url.scheme(), "http" | "https") && url.port() != Some(0);
        let found = Self(url);
        let is_host =
            !found.host().is_empty() && !found.host().parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
        (is_place && is_web && is_host).then_some(found)
    }

    /// Its host, without the brackets of an address of IPv6.
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// True where requests go over TLS.
    pub fn is_secure(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// As text, without a slash at its end.
    pub fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_scheme_a_host_and_a_port_and_nothing_more() {
        let check = |text: &str, shown: &str, host: &str, is_secure: bool| {
            let url = ServerUrl::parse(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((url.to_string().as_str(), url.host(), url.is_secure()), (shown, host, is_secure));
        };
        check("http://10.0.0.2:7717", "http://10.0.0.2:7717", "10.0.0.2", false);
        check("https://A.example/", "https://a.example", "a.example", true);
        check("https://a.example:443", "https://a.example", "a.example", true);
        check("http://[fd00::2]:7717", "http://[fd00::2]:7717", "fd00::2", false);
        let long = format!("http://{}", "a".repeat(BYTES_MAX));
        for wrong in [
            "",
            "10.0.0.2:7717",
            "ftp://10.0.0.2",
            "http://",
            "http://me@a.example",
            "http://me:secret@a.example",
            "http://a.example/path",
            "http://a.example?",
            "http://a.example#",
            "http://a.example:0",
            "http://a.example:99999",
            "http://a .example",
            "http://a.exa\nmple",
            "http://0.0.0.0:7717",
            "http://0:7717",
            "http://[::]:7717",
            "file:///etc",
            &long,
        ] {
            assert_eq!(ServerUrl::parse(wrong), None, "{wrong}");
        }
    }
}
