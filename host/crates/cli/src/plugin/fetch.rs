//! Fetches one file from an address, bounded in bytes and in time, and never redirected from `https` to `http`.

use longhaul_core::LimitHit;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use std::time::Duration;

/// Longest wait for a connection, and for the next bytes.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);

/// Most redirects.
const REDIRECTS_MAX: usize = 5;

/// Parses an address. Without TLS it is only allowed together with a digest.
pub fn address(text: &str, has_digest: bool) -> fault::Result<Url> {
    let url = Url::parse(text).with_context(|| format!("`{text}` is no address"))?;
    if url.scheme() != "https" && !has_digest {
        bail!("over http anybody could change it; use https, or add the digest: URL@sha256:DIGEST");
    }
    Ok(url)
}

/// The address for records, without password, query and fragment.
pub fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// Fetches the file, of at most `bytes_max` bytes.
pub async fn fetch(url: &Url, bytes_max: u64) -> fault::Result<Vec<u8>> {
    let shown = without_secrets(url);
    let client = client(url.scheme() == "https")?;
    let failed = |error: reqwest::Error| {
        // The client's own message holds the address with its secrets.
        let error = Fault::from(error.without_url());
        Fault::msg(longhaul_egress::with_proxy_named(format!("cannot fetch `{shown}`: {error:#}")))
    };
    let mut response = client.get(url.clone()).send().await.map_err(failed)?;
    if !response.status().is_success() {
        bail!("cannot fetch `{shown}`: it answered {}", response.status());
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > bytes_max {
            bail!("`{shown}`: {}", LimitHit::new("bytes_max", bytes.len() as u64, bytes_max));
        }
    }
    Ok(bytes)
}

fn client(secure: bool) -> fault::Result<Client> {
    let tls = longhaul_egress::tls::config(secure).context("TLS cannot be used on this machine")?;
    let follow = if secure { Policy::limited(REDIRECTS_MAX) } else { Policy::none() };
    let builder = Client::builder().https_only(secure).redirect(follow).connect_timeout(CONNECT).read_timeout(SILENCE);
    Ok(builder
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("longhaul/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(reqwest::Error::without_url)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_tls_needs_a_digest() {
        assert!(address("http://a.example/a.wasm", true).is_ok());
        assert!(address("https://a.example/a.wasm", false).is_ok());
        let error = address("http://a.example/a.wasm", false).unwrap_err().to_string();
        assert!(error.ends_with("add the digest: URL@sha256:DIGEST"), "{error}");
    }

    #[test]
    fn secrets_of_an_address_are_not_noted() {
        let url = address("https://me:hunter2@a.example/a.wasm?token=t#f", false).unwrap();
        assert_eq!(without_secrets(&url), "https://a.example/a.wasm");
    }
}
