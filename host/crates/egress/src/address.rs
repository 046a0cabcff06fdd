//! Names and addresses: resolution, and the addresses that a guest may not reach.
//!
//! Every address that is not a global unicast address is refused: the machine itself, its networks, and blocks from
//! which another protocol could carry a request there.

use longhaul_core::Denial;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolving};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Finds the addresses of a name.
#[async_trait::async_trait]
pub trait Resolve: Send + Sync {
    /// Every address, in the order in which to try them.
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>>;
}

/// The machine's own resolver.
pub struct System;

#[async_trait::async_trait]
impl Resolve for System {
    async fn resolve(&self, host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// The resolver of the client: for every name it returns the checked addresses. So a name that changes its addresses
/// between the check and the connection has no effect.
pub(crate) struct Checked(pub(crate) Vec<SocketAddr>);

impl reqwest::dns::Resolve for Checked {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(async move { Ok(addresses) })
    }
}

/// The address in a URL's host, if it is one.
pub(crate) fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

/// The reason why an address may not be reached; none for a public one.
pub fn special(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    }
}

/// The refusal of an address, with the line that would name it.
pub(crate) fn denial(table: &str, url: &Url, ip: IpAddr, kind: &str) -> Denial {
    let (scheme, host) = (url.scheme(), url.host_str().unwrap_or_default());
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let literal = match ip {
        IpAddr::V4(ip) => ip.to_string(),
        // In the client's notation, which the grant is compared with.
        IpAddr::V6(ip) => Url::parse(&format!("http://[{ip}]"))
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned))
            .unwrap_or_default(),
    };
    Denial {
        reason: format!("this plugin may not reach `{scheme}://{host}{port}`, which leads to {literal}, {kind}"),
        fix: format!("{}, and use that address", fix(table, &format!("{scheme}://{literal}{port}"))),
    }
}

/// The grant that allows a host. Code that is run by itself has no table.
pub(crate) fn fix(table: &str, url: &str) -> String {
    match table {
        "" => format!("run it with --allow-host {url}"),
        table => format!("add to longhaul.toml: [{table}] hosts = [\"{url}\"]"),
    }
}

/// The registry of special blocks (IANA, 2025), and reserved blocks.
fn special_v4(ip: Ipv4Addr) -> Option<&'static str> {
    match ip.octets() {
        [0, ..] => Some("an unspecified address"),
        [127, ..] => Some("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private address"),
        [169, 254, ..] => Some("a link-local address"),
        [100, 64..=127, ..] => Some("a carrier's private address"),
        [192, 0, 0, _] | [192, 88, 99, _] => Some("an address of a protocol"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("an address for documentation"),
        [198, 18..=19, ..] => Some("an address for benchmarks"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

fn special_v6(ip: Ipv6Addr) -> Option<&'static str> {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0, 0, 0, 0, 0, 0xffff, ..] => Some("an IPv4 address in disguise"),
        // A network without IPv4 reaches every IPv4 host in this way: the embedded address counts.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => special_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))),
        [0xfc00..=0xfdff, ..] => Some("a unique local address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("an address for documentation"),
        [0x2001, 0..=0x1ff, ..] => Some("an address of a protocol"),
        [0x2002, ..] => Some("an IPv4 address in disguise"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("an address outside of global unicast"),
    }
}
