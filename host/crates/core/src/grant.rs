//! The grants of a plugin: its requests in `plugin.toml`, intersected with the operator's grants in `longhaul.toml`.
//! Nothing is allowed that is not on both lists. Knows no WebAssembly.

use crate::Denial;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The allowed use of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Listed and read.
    Read,
    /// Also changed.
    Write,
}

impl Access {
    /// The word of the access in configurations.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// A directory of the host, under a name in the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryGrant {
    /// Its path in the guest, for example `/work`.
    pub guest: String,
    /// Its path on the host.
    pub host: PathBuf,
    /// The granted access.
    pub access: Access,
}

/// The grants of one plugin in one invocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    /// For refusals: the table of `longhaul.toml` that would allow more, for example `agents.code`.
    pub table: String,
    /// Directories, for tools and memory backends.
    pub directories: Vec<DirectoryGrant>,
    /// Hosts, for tools and memory backends, as patterns of [`HostPattern`].
    pub hosts: Vec<HostPattern>,
    /// Tools, for agents.
    pub tools: Vec<String>,
    /// Agents that it may delegate to.
    pub agents: Vec<String>,
    /// Models; the first is the default.
    pub models: Vec<String>,
}

impl Grants {
    /// Checks that the tool may be called.
    ///
    /// # Errors
    /// The denial, with the line that would allow it.
    pub fn check_tool(&self, tool: &str) -> Result<(), Denial> {
        self.check_listed("tool", "tools", &self.tools, tool)
    }

    /// Checks that the agent may be delegated to.
    ///
    /// # Errors
    /// The denial, with the line that would allow it.
    pub fn check_agent(&self, agent: &str) -> Result<(), Denial> {
        self.check_listed("agent", "agents", &self.agents, agent)
    }

    /// The model to ask: the one that the guest names, else the default.
    ///
    /// # Errors
    /// The denial, with the line that would allow it.
    pub fn choose_model(&self, named: Option<&str>) -> Result<String, Denial> {
        let Some(default) = self.models.first() else {
            return Err(self.denial("this plugin may not use a model", "models = [\"default\"]"));
        };
        let model = named.unwrap_or(default);
        self.check_listed("model", "models", &self.models, model)?;
        Ok(model.to_owned())
    }

    /// Checks that the guest may reach an address.
    ///
    /// # Errors
    /// The denial, with the line that would allow it.
    pub fn check_host(&self, scheme: &str, authority: &str) -> Result<(), Denial> {
        if self.hosts.iter().any(|pattern| pattern.covers(scheme, authority)) {
            return Ok(());
        }
        let url = crate::text::truncate(&format!("{scheme}://{authority}"), 200);
        Err(self.denial(&format!("this plugin may not reach `{url}`"), &format!("hosts = [\"{url}\"]")))
    }

    fn check_listed(&self, kind: &str, field: &str, list: &[String], name: &str) -> Result<(), Denial> {
        if list.iter().any(|listed| listed == name) {
            return Ok(());
        }
        // The name is the guest's: cut it before it enters a message.
        let name = crate::text::truncate(name, 80);
        Err(self.denial(&format!("this plugin may not use the {kind} `{name}`"), &format!("{field} = [\"{name}\"]")))
    }

    fn denial(&self, reason: &str, line: &str) -> Denial {
        Denial { reason: reason.to_owned(), fix: format!("add to longhaul.toml: [{}] {line}", self.table) }
    }
}

/// A host pattern: `https://api.example.com` or `https://*.example.com`, with a port when it is not the scheme's own,
/// and with methods before it when not all are allowed: `GET https://api.example.com` or `GET,HEAD https://...`. A bare
/// `*` and a `*` inside a label are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostPattern {
    scheme: String,
    host: String,
    port: u16,
    /// In capitals; an empty list allows all.
    methods: Vec<String>,
}

/// The text is not a pattern of a host.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host pattern; write `https://api.example.com`, `https://*.example.com:8443` or `GET https://...`"
)]
pub struct NotAHost(String);

impl HostPattern {
    /// True when it covers `authority` (`host` or `host:port`, no user) under `scheme`.
    #[must_use]
    pub fn covers(&self, scheme: &str, authority: &str) -> bool {
        let Some((host, port)) = split_authority(scheme, authority) else { return false };
        if scheme != self.scheme || port != self.port {
            return false;
        }
        match self.host.strip_prefix("*.") {
            // The dot is compared too, so that `evilexample.com` is not under `*.example.com`.
            Some(parent) => host.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            None => host == self.host,
        }
    }
}

impl HostPattern {
    /// True when it allows requests with this method.
    #[must_use]
    pub fn allows(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|one| one == method)
    }

    /// True when its methods only read.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        !self.methods.is_empty() && self.methods.iter().all(|one| matches!(one.as_str(), "GET" | "HEAD"))
    }

    /// Scheme, host and port, without methods.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.host, self.port)
    }

    /// True when requests to it are encrypted.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.scheme == "https"
    }

    /// True when it is this very machine, by a loopback name or address.
    #[must_use]
    pub fn is_this_machine(&self) -> bool {
        matches!(self.host.as_str(), "localhost" | "[::1]")
            || self.host.parse().is_ok_and(|ip: std::net::Ipv4Addr| ip.is_loopback())
    }

    /// The part of it within `asked`; none if that is another host.
    #[must_use]
    pub fn within(&self, asked: &Self) -> Option<Self> {
        if self.origin() != asked.origin() {
            return None;
        }
        let mut narrowed = self.clone();
        if self.methods.is_empty() {
            narrowed.methods.clone_from(&asked.methods);
        } else {
            narrowed.methods.retain(|method| asked.allows(method));
        }
        // No common method must not become an empty list, which would allow all.
        (!narrowed.methods.is_empty() || asked.methods.is_empty()).then_some(narrowed)
    }
}

impl TryFrom<String> for HostPattern {
    type Error = NotAHost;

    fn try_from(text: String) -> Result<Self, NotAHost> {
        let wrong = || NotAHost(crate::text::truncate(&text, 200));
        let (methods, url) = match text.split_once(' ') {
            Some((methods, url)) => (methods.split(',').map(str::to_owned).collect(), url.trim_start()),
            None => (Vec::new(), text.as_str()),
        };
        if !methods.iter().all(|one: &String| !one.is_empty() && one.chars().all(|c| c.is_ascii_uppercase())) {
            return Err(wrong());
        }
        let (scheme, authority) = url.split_once("://").ok_or_else(wrong)?;
        if !matches!(scheme, "http" | "https") {
            return Err(wrong());
        }
        let (host, port) = split_authority(scheme, authority).ok_or_else(wrong)?;
        let bare = host.strip_prefix("*.").unwrap_or(&host);
        if bare.is_empty() || bare.contains('*') || !bare.split('.').all(|label| !label.is_empty()) {
            return Err(wrong());
        }
        Ok(Self { scheme: scheme.to_owned(), host, port, methods })
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        let methods = if pattern.methods.is_empty() { String::new() } else { pattern.methods.join(",") + " " };
        methods + &pattern.origin()
    }
}

fn split_authority(scheme: &str, authority: &str) -> Option<(String, u16)> {
    if authority.is_empty() || authority.contains(['@', '/', '?', '#', '\\', ' ']) {
        return None;
    }
    let default = if scheme == "https" { 443 } else { 80 };
    // An IPv6 address is in brackets and has colons of its own.
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
        _ => (authority, default),
    };
    Some((host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, allowed: &[&str], denied: &[&str]) {
        let grants = Grants { hosts: vec![HostPattern::try_from(pattern.to_owned()).unwrap()], ..Grants::default() };
        for (urls, expected) in [(allowed, true), (denied, false)] {
            for url in urls {
                let (scheme, authority) = url.split_once("://").unwrap();
                assert_eq!(grants.check_host(scheme, authority).is_ok(), expected, "{pattern} and {url}");
            }
        }
    }

    #[test]
    fn a_grant_covers_its_host_and_no_lookalike() {
        check(
            "https://api.example.com",
            &["https://api.example.com", "https://API.example.com:443"],
            &[
                "http://api.example.com",
                "https://api.example.com.evil.net",
                "https://api.example.com:8443",
                "https://user@api.example.com",
                "https://example.com",
            ],
        );
        check(
            "https://*.example.com",
            &["https://a.example.com", "https://a.b.example.com"],
            &["https://example.com", "https://evilexample.com", "https://.example.com"],
        );
    }

    #[test]
    fn a_pattern_that_would_cover_everything_is_refused() {
        for pattern in [
            "*",
            "https://*",
            "https://*foo.com",
            "https://a.*.com",
            "ftp://a.com",
            "https://",
            "https://a..b",
            "get https://a.com",
            ", https://a.com",
        ] {
            assert!(HostPattern::try_from(pattern.to_owned()).is_err(), "{pattern}");
        }
    }

    #[test]
    fn methods_narrow_a_grant_and_never_widen_it() {
        let pattern = |text: &str| HostPattern::try_from(text.to_owned()).unwrap();
        // given, asked, what is left
        for (given, asked, left) in [
            ("https://a.com", "https://a.com", Some("https://a.com:443")),
            ("GET,HEAD https://a.com", "https://a.com", Some("GET,HEAD https://a.com:443")),
            ("https://a.com", "GET https://a.com", Some("GET https://a.com:443")),
            ("GET,POST https://a.com", "GET https://a.com", Some("GET https://a.com:443")),
            ("POST https://a.com", "GET https://a.com", None),
            ("https://a.com", "https://b.com", None),
        ] {
            let within = pattern(given).within(&pattern(asked)).map(String::from);
            assert_eq!(within.as_deref(), left, "{given} within {asked}");
        }
        let read_only = pattern("GET,HEAD https://a.com");
        let allowed = ["GET", "HEAD", "POST", "get"].map(|method| read_only.allows(method));
        assert_eq!((allowed, read_only.covers("https", "a.com")), ([true, true, false, false], true));
        let reads =
            ["GET,HEAD https://a.com", "https://a.com", "GET,QUERY https://a.com"].map(|one| pattern(one).only_reads());
        assert_eq!(reads, [true, false, false]);
    }

    #[test]
    fn a_refusal_names_the_line_that_would_allow_it() {
        let grants = Grants { table: "agents.code".into(), ..Grants::default() };
        let denial = grants.check_tool("files").unwrap_err();
        assert_eq!(denial.fix, "add to longhaul.toml: [agents.code] tools = [\"files\"]");
    }
}
