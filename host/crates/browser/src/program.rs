//! The choice of the browser, and its switches.

use crate::error::BrowserError;
use crate::settings::BrowserSettings;
use std::path::{Path, PathBuf};

/// Usual names, the one that is most probably up to date first.
const NAMES: [&str; 6] =
    ["chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chromium-headless-shell", "chrome"];

/// Disabled features. The sandbox already leaves only the proxy; these switches keep the browser from trying, and leave
/// the resolution of names to the guard.
const SWITCHES: [&str; 31] = [
    "--headless",
    "--remote-debugging-pipe",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--deny-permission-prompts",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    // Some of them ask Google without a page, whatever `--disable-background-networking` says.
    "--disable-features=AimServerRequestOnStartupEnabled,AsyncDns,AutofillServerCommunication,DnsOverHttps,MediaRouter,\
     NetworkTimeServiceQuerying,OptimizationHints,PreconnectToSearch,Prerender2,Translate",
    // Builds other than Google's have experiments turned on.
    "--disable-field-trial-config",
    "--disable-file-system",
    "--disable-gpu",
    "--disable-notifications",
    "--disable-quic",
    "--disable-sync",
    "--dns-prefetch-disable",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    // Its own needs namespaces, which are unavailable inside of the host's.
    "--no-sandbox",
    "--password-store=basic",
    "--window-size=1280,800",
];

/// The program of the settings, or the first of [`NAMES`] in PATH.
pub(crate) fn find(settings: &BrowserSettings) -> Result<PathBuf, BrowserError> {
    if let Some(program) = &settings.program {
        let absent = || BrowserError::NoProgram { looked_for: format!("`{}`", program.display()) };
        return if program.is_file() { Ok(program.clone()) } else { Err(absent()) };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    let candidates = NAMES.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    candidates
        .into_iter()
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| BrowserError::NoProgram { looked_for: format!("{} in PATH", NAMES.join(", ")) })
}

/// The command, without its profile and the port of its proxy, which only the child knows.
pub(crate) fn command(program: &Path) -> Vec<String> {
    let mut argv = vec![program.to_string_lossy().into_owned()];
    argv.extend(SWITCHES.map(str::to_owned));
    argv
}
