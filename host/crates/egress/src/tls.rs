//! The TLS trust of every HTTP client of the host: rustls with ring and the machine's own authorities, chosen here and
//! not by a process-wide default. It opens no connection.

use rustls::{ClientConfig, Error, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::{Arc, OnceLock};

/// The client's TLS settings. With `secure`, they trust the machine's authorities, which are loaded once a process.
/// Without it they trust none, and none has to be installed.
///
/// # Errors
/// When the machine has no authorities that can be read.
pub fn config(secure: bool) -> Result<ClientConfig, Error> {
    static SECURE: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(found) = SECURE.get().filter(|_| secure) {
        return Ok(found.clone());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    if !secure {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let made = builder.with_platform_verifier()?.with_no_client_auth();
    Ok(SECURE.get_or_init(|| made).clone())
}
