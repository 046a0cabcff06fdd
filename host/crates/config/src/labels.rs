//! The names of labels: those that a worker has, in `server.toml`, and those that a run needs, in `longhaul.toml`.
//!
//! Both files have one rule, so that no run asks for a label that no worker could have. Refuses to give a label a
//! meaning: whether a machine has a graphics card is for its operator to say.

use longhaul_core::fault::{self, bail};
use longhaul_core::text::printable;
use std::collections::BTreeSet;

/// Labels of one list.
pub(crate) const LABELS_MAX: usize = 32;

/// Characters of a label, as of a label of Kubernetes.
const LABEL_LENGTH_MAX: usize = 63;

/// Bytes of a wrong label that an error shows.
const SHOWN_BYTES_MAX: usize = 80;

/// Checks the labels of a key, which the error names.
pub(crate) fn check(key: &str, labels: &[String]) -> fault::Result<()> {
    if labels.len() > LABELS_MAX {
        bail!("{key} has {} labels; write at most {LABELS_MAX}", labels.len());
    }
    if let Some(wrong) = labels.iter().find(|label| !is_label(label)) {
        bail!(
            "{key} has `{}`; a label has 1 to {LABEL_LENGTH_MAX} of a-z, 0-9, `.`, `_` and `-`, and a letter or a digit \
             first",
            printable(wrong, SHOWN_BYTES_MAX)
        );
    }
    let mut known = BTreeSet::new();
    match labels.iter().find(|label| !known.insert(*label)) {
        Some(twice) => bail!("{key} has `{twice}` twice; keep one"),
        None => Ok(()),
    }
}

fn is_label(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= LABEL_LENGTH_MAX
        && text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_labels(labels: &[&str], expected: &str) {
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let told = check("[worker] labels", &labels).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(told.is_empty(), expected.is_empty(), "{labels:?}: {told}");
        assert!(told.contains(expected) && told.lines().count() <= 1, "{labels:?}: {told}");
    }

    #[test]
    fn labels_are_short_plain_names_of_which_none_is_there_twice() {
        let (longest, longer) = ("a".repeat(63), "a".repeat(64));
        check_labels(&[], "");
        check_labels(&["gpu", "eu", "zone-a.1_b", "7", &longest], "");
        check_labels(&["", "gpu"], "[worker] labels has ``; a label has 1 to 63 of a-z");
        for wrong in ["GPU", "-gpu", ".gpu", "_gpu", "g pu", "größe", "gpu=1", "gpu,eu", "gpu\u{1b}[2J\n", &longer] {
            check_labels(&["eu", wrong], "a letter or a digit first");
        }
        check_labels(&["gpu", "eu", "gpu"], "[worker] labels has `gpu` twice; keep one");
    }

    #[test]
    fn a_list_has_at_most_32_labels() {
        let names: Vec<String> = (0..33).map(|number| format!("l{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        check_labels(&names[..32], "");
        check_labels(&names, "[worker] labels has 33 labels; write at most 32");
    }
}
