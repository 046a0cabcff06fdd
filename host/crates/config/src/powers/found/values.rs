//! Values of a `longhaul.toml` as a power shows them: words for a shell, and addresses without their secrets.
//!
//! It looks at no file, and reports no power.

use longhaul_core::Digest;
use longhaul_core::text::shell_word;
use serde_json::Value;

/// Length from which on letters and digits in a path may be a key.
const KEY_CHARS_MIN: usize = 20;

pub(super) fn tables<'a>(whole: &'a Value, name: &str) -> Vec<(&'a String, &'a Value)> {
    whole[name].as_object().into_iter().flatten().collect()
}

/// The words of a list, each quoted for a shell.
pub(super) fn words(list: &Value) -> Option<String> {
    let words: Vec<String> = texts(list).map(shell_word).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The scheme, host and port of an address, without its possibly secret parts.
fn origin(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("{scheme}://{}", authority.rsplit('@').next().unwrap_or_default())
}

/// An address as people see it. Its user, the part after `?` or `#`, and path components that may be keys are replaced
/// by a digest of all of it; `hides_path`: the whole path is.
pub(super) fn address(text: &str, hides_path: bool) -> String {
    let origin = origin(text);
    let Some((_, rest)) = text.split_once("://") else { return origin };
    let behind = rest.find(['/', '?', '#']).map_or("", |at| &rest[at..]);
    let path = behind.split(['?', '#']).next().unwrap_or_default();
    let shown: Vec<&str> = path.split('/').map(|part| if may_be_key(part) { "..." } else { part }).collect();
    let told = if hides_path { origin } else { format!("{origin}{}", shown.join("/")) };
    if told == text { told } else { format!("{told}, {}", Digest::of(text.as_bytes()).short()) }
}

fn may_be_key(part: &str) -> bool {
    let has = |is: fn(&u8) -> bool| part.as_bytes().iter().any(is);
    part.len() >= KEY_CHARS_MIN && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}

pub(super) fn is_loopback(address: &str) -> bool {
    let origin = origin(address);
    let authority = origin.split_once("://").map_or(origin.as_str(), |(_, rest)| rest);
    let host = authority.rsplit_once(':').map_or(authority, |(host, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { host } else { authority }
    });
    host == "localhost"
        || host == "[::1]"
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// True when a sandbox level is not below the default.
pub(super) fn is_whole(level: &Value) -> bool {
    level.is_null() || level == "full" || level == "runsc"
}

/// The providers' own addresses.
pub(super) fn is_usual_endpoint(address: &str) -> bool {
    matches!(origin(address).as_str(), "https://api.openai.com" | "https://api.anthropic.com")
}

/// Variables that providers themselves name.
pub(super) fn is_usual_key(variable: &str) -> bool {
    matches!(variable, "OPENAI_API_KEY" | "ANTHROPIC_API_KEY")
}
