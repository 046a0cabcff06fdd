//! The proxy of the environment, named in errors of clients that use one: those of models, telemetry and downloads.
//!
//! No client of this crate uses it, and nothing here connects to anything.

/// The variables of a proxy for `https`, in the order in which HTTP clients look for them.
const VARIABLES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Words of an error of a client that reached no server through a proxy: of this program's, and of pip's.
const FAILED: [&str; 2] = ["tunnel error", "ProxyError"];

/// Adds to the text of an error which proxy of the environment failed, and what to do. Other errors stay as they are.
#[must_use]
pub fn with_proxy_named(error: String) -> String {
    named(error, |name| std::env::var(name).ok())
}

fn named(error: String, variable: impl Fn(&str) -> Option<String>) -> String {
    let set = |name: &'static str| Some((name, variable(name).filter(|value| !value.is_empty())?));
    match VARIABLES.into_iter().find_map(set).filter(|_| FAILED.iter().any(|words| error.contains(words))) {
        Some((name, value)) => {
            let proxy = without_user(&value);
            format!("{error}; `{name}` names the proxy `{proxy}`: correct it, or name the host in `NO_PROXY`")
        }
        None => error,
    }
}

/// The address without a name and a password.
fn without_user(proxy: &str) -> String {
    let (scheme, rest) = proxy.split_once("://").map_or(("", proxy), |(scheme, rest)| (scheme, rest));
    let address = rest.rsplit_once('@').map_or(rest, |(_, address)| address);
    if scheme.is_empty() { address.to_owned() } else { format!("{scheme}://{address}") }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[track_caller]
    fn check(error: &str, name: &str, value: &str, added: &str) {
        let told = named(error.to_owned(), |asked| (asked == name).then(|| value.to_owned()));
        assert_eq!(told, format!("{error}{added}"));
    }

    #[test]
    fn a_proxy_that_refuses_is_named_without_its_password() {
        check(
            "tunnel error: Connection refused",
            "HTTPS_PROXY",
            "http://me:hunter2@proxy.example:3128",
            "; `HTTPS_PROXY` names the proxy `http://proxy.example:3128`: correct it, or name the host in `NO_PROXY`",
        );
        check(
            "ProxyError('Cannot connect to proxy.')",
            "all_proxy",
            "me:p@ss@127.0.0.1:9",
            "; `all_proxy` names the proxy `127.0.0.1:9`: correct it, or name the host in `NO_PROXY`",
        );
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        check("dns error", "HTTPS_PROXY", "http://a.example", "");
        check("tunnel error", "HTTP_PROXY", "http://a.example", "");
        check("tunnel error", "HTTPS_PROXY", "", "");
    }
}
