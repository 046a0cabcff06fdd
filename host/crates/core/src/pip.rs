//! The reason why pip fetched nothing, in one line, from the pages that it prints.
//!
//! Only words of pip's output are looked at. Nothing here starts pip, reads its settings or knows an index.

use crate::text::{cleaned, truncate};

/// The longest part of pip's own words in a reason, in bytes.
const WORDS_BYTES_MAX: usize = 300;

/// The remedy where the index is out of reach.
const CONNECT: &str = "name a proxy with HTTPS_PROXY or an index that this machine reaches with PIP_INDEX_URL; \
                       offline, set PIP_NO_INDEX=1 and PIP_FIND_LINKS to a directory with its wheel";

/// A known cause: pip's words for it, the reason for people, and what they can do.
struct KnownCause {
    words: &'static [&'static str],
    reason: &'static str,
    remedy: &'static str,
}

/// The first that the output has counts: a retry names the connection, and the last line only says that nothing was
/// found.
const CAUSES: &[KnownCause] = &[
    KnownCause {
        words: &["No module named pip"],
        reason: "this Python has no pip",
        remedy: "install it; on Debian: apt install python3-pip",
    },
    KnownCause {
        words: &["No space left on device"],
        reason: "the disk is full",
        remedy: "make room, or name a cache on another disk with LONGHAUL_CACHE",
    },
    KnownCause {
        words: &["ProxyError", "Cannot connect to proxy", "Tunnel connection failed"],
        // Callers that name the proxy of the environment look for this word.
        reason: "the proxy let no connection through (ProxyError)",
        remedy: "correct HTTPS_PROXY, or name an index that this machine reaches with PIP_INDEX_URL; \
                 offline, set PIP_NO_INDEX=1 and PIP_FIND_LINKS to a directory with its wheel",
    },
    KnownCause {
        words: &["CERTIFICATE_VERIFY_FAILED", "SSLError", "SSLCertVerificationError"],
        reason: "the certificate of the package index is not trusted",
        remedy: "name the certificates of your proxy or index with PIP_CERT",
    },
    KnownCause {
        words: &["Name or service not known", "name resolution", "NameResolutionError", "getaddrinfo failed"],
        reason: "the name of the package index cannot be resolved",
        remedy: CONNECT,
    },
    KnownCause {
        words: &["Network is unreachable", "No route to host"],
        reason: "the network is unreachable",
        remedy: CONNECT,
    },
    KnownCause {
        words: &["Connection refused"],
        reason: "the connection to the package index was refused",
        remedy: CONNECT,
    },
    KnownCause {
        words: &["timed out", "TimeoutError"],
        reason: "the package index did not answer in time",
        remedy: CONNECT,
    },
    KnownCause {
        words: &["Connection aborted", "Connection reset", "RemoteDisconnected", "NewConnectionError", "ProtocolError"],
        reason: "the connection to the package index broke off",
        remedy: CONNECT,
    },
    KnownCause {
        words: &["No matching distribution found", "Could not find a version"],
        reason: "the package index does not have this version",
        remedy: "name an index that has it with PIP_INDEX_URL",
    },
];

/// The reason of a failure, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipFailure {
    /// The reason, in a few words.
    pub reason: String,
    /// The remedy.
    pub remedy: &'static str,
}

impl PipFailure {
    /// Reads the standard output and standard error of a pip that failed; `status` stands for the reason of a silent
    /// one.
    #[must_use]
    pub fn of(output: &str, status: &str) -> Self {
        let known = CAUSES.iter().find(|cause| cause.words.iter().any(|words| output.contains(words)));
        match known {
            Some(cause) => Self { reason: cause.reason.to_owned(), remedy: cause.remedy },
            None => {
                let last = output.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or(status);
                let words = without_addresses(last.strip_prefix("ERROR: ").unwrap_or(last));
                Self { reason: truncate(&cleaned(&words), WORDS_BYTES_MAX), remedy: "check the settings of pip" }
            }
        }
    }
}

/// `text` without the addresses that may have a password: pip names its index, and a person may have put one there.
#[must_use]
pub fn without_addresses(text: &str) -> String {
    let has_user = |word: &str| word.contains("://") && word.contains('@');
    text.split_inclusive(char::is_whitespace)
        .map(|word| match has_user(word) {
            true => format!("[address]{}", &word[word.trim_end().len()..]),
            false => word.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A retry of pip 23.2.
    fn retry(why: &str) -> String {
        let line = format!(
            "WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by \
             'NewConnectionError('<HTTPSConnection object at 0x7f>: Failed to establish a new connection: {why}')': \
             /simple/a/\n"
        );
        format!(
            "{}ERROR: Could not find a version that satisfies the requirement a==1 (from versions: none)\n\
             ERROR: No matching distribution found for a==1\n",
            line.repeat(5)
        )
    }

    #[track_caller]
    fn check(output: &str, reason: &str, remedy: &str) {
        let found = PipFailure::of(output, "exit status: 1");
        assert_eq!(found.reason, reason, "{output}");
        assert!(found.remedy.contains(remedy), "{output}\n{}", found.remedy);
        assert!(!found.reason.contains('\n') && !found.remedy.contains('\n'));
    }

    #[test]
    fn eight_lines_of_retries_become_one_reason_and_a_remedy() {
        let refused = retry("[Errno 111] Connection refused");
        check(&refused, "the connection to the package index was refused", "PIP_INDEX_URL");
        let unknown = retry("[Errno -2] Name or service not known");
        check(&unknown, "the name of the package index cannot be resolved", "HTTPS_PROXY");
        let unreachable = retry("[Errno 101] Network is unreachable");
        check(&unreachable, "the network is unreachable", "PIP_NO_INDEX=1 and PIP_FIND_LINKS");
        let proxy = "ProxyError('Cannot connect to proxy.', OSError('Tunnel connection failed: 403 Forbidden'))";
        check(proxy, "the proxy let no connection through (ProxyError)", "correct HTTPS_PROXY");
        check("SSLError(CERTIFICATE_VERIFY_FAILED)", "the certificate of the package index is not trusted", "PIP_CERT");
        check("/usr/bin/python3: No module named pip\n", "this Python has no pip", "apt install python3-pip");
    }

    #[test]
    fn an_index_without_the_version_is_told_from_one_out_of_reach() {
        let output = "ERROR: Could not find a version that satisfies the requirement a==1 (from versions: 0.1)\n";
        check(output, "the package index does not have this version", "PIP_INDEX_URL");
    }

    #[test]
    fn an_unknown_reason_is_the_last_line_without_a_password() {
        check("more\nERROR: odd https://me:hunter2@index/simple here\n\n", "odd [address] here", "settings of pip");
        check("", "exit status: 1", "settings of pip");
        assert_eq!(without_addresses("a https://me:p@i\nb\thttps://i c"), "a [address]\nb\thttps://i c");
    }
}
