//! Texts that a plugin, a repository, a model or an operator's editor writes.

use longhaul_approval::{command_line, command_words, visible};
use longhaul_config::Config;
use longhaul_core::section::MANIFEST;
use longhaul_core::work::FeatureSpec;
use longhaul_engine::{CompileLimits, inspect, sections};
use longhaul_harness::{HarnessLimits, HarnessSetup, plan as plans};
use longhaul_plugins::manifest::PluginManifest;

/// A component's file, and the manifest that one carries.
pub(crate) fn manifest(bytes: &[u8]) {
    let found = sections("fuzz", bytes);
    if let Ok(found) = &found {
        assert!(found.metadata.len() <= 100, "{} texts are kept", found.metadata.len());
    }
    if let Ok(found) = inspect("fuzz", bytes, &CompileLimits::default()) {
        assert_eq!(found.bytes, bytes.len() as u64);
    }
    let carried = sections("fuzz", &carrying(bytes));
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(carried.is_err(), "a manifest that is no text is taken");
        return;
    };
    if let Ok(found) = carried {
        assert_eq!(found.manifest.as_deref(), Some(text));
    }
    if let Ok(manifest) = PluginManifest::parse(text) {
        for line in manifest.asks.lines() {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

/// A component whose only section is a manifest of these bytes.
fn carrying(text: &[u8]) -> Vec<u8> {
    let number = |mut left: usize| {
        let mut bytes = Vec::new();
        while left > 0x7f {
            bytes.push(0x80 | u8::try_from(left & 0x7f).unwrap_or(0));
            left >>= 7;
        }
        bytes.push(u8::try_from(left).unwrap_or(0));
        bytes
    };
    let content = [&number(MANIFEST.len()), MANIFEST.as_bytes(), text].concat();
    [&b"\0asm\x0d\0\x01\0\0"[..], &number(content.len()), &content].concat()
}

/// `longhaul.toml`.
pub(crate) fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Config::parse_all(text) {
        Ok(config) => {
            let _ = (config.check_run(), config.run.needs(), config.ask_limits(), config.checks_only(None));
            assert!(config.run.priority() <= 9 && config.run.labels_needed().len() <= 32);
            let (_, _, _) = (config.categories(), config.described(), config.confidence_ignored());
            for (table, part) in config.parts() {
                assert!(config.part(&table).is_some(), "{table}");
                let _ = (config.limits_of(part), config.context_of(part), config.checkpoint_every(&table));
            }
            // A run pins the text that it began with.
            assert!(Config::parse_pinned(text).is_ok());
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            for fault in faults {
                let said = fault.to_string();
                assert!(!said.contains('\n'), "{said:?}");
            }
        }
    }
}

/// A plan as a person writes it, and as a planner hands it over.
pub(crate) fn plan(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(plan) = plans::written::read(text) else { return };
    let setup = HarnessSetup {
        agents: vec!["code".into(), "research".into()],
        checks: vec!["unit".into()],
        ..HarnessSetup::default()
    };
    let limits = HarnessLimits::default();
    match plans::accept(plan, &setup, &limits) {
        Ok(accepted) => {
            let specs: Vec<FeatureSpec> = accepted.steps.into_iter().map(|step| step.spec).collect();
            assert!(plans::dependency_error(&specs).is_none());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A command line that an agent asks for, and the same as words.
pub(crate) fn shell_words(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let shown = visible(text);
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    if let Ok(command) = command_line(text) {
        assert!(!command.program.is_empty());
        // A text with characters of the shell is not a plain command.
        let meant = meant(text);
        assert!(!meant.contains(MEANINGS), "{text:?} is taken for one plain command, and has `{meant}`");
    }
    let words: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let _ = command_words(&words);
}

/// Characters by which a shell chains, redirects, substitutes, matches, expands or quotes.
const MEANINGS: [char; 22] =
    ['\n', ';', '|', '&', '`', '<', '>', '$', '(', ')', '{', '}', '[', ']', '*', '?', '!', '#', '^', '~', '\\', '"'];

/// The characters of a line that a shell looks at: within double quotes those that expand or quote there, within single
/// quotes none. A quote that is not closed is looked at too.
fn meant(text: &str) -> String {
    let (mut meant, mut quote) = (String::new(), None);
    for char in text.chars() {
        match (quote, char) {
            (None, '\'' | '"') => quote = Some(char),
            (Some(open), close) if open == close => quote = None,
            (None, other) | (Some('"'), other @ ('$' | '`' | '\\' | '!')) => meant.push(other),
            (Some(_), _) => {}
        }
    }
    meant.extend(quote.map(|_| '"'));
    meant
}

#[cfg(test)]
mod tests {
    use super::{MEANINGS, meant};

    #[test]
    fn the_oracle_of_command_lines_sees_what_a_shell_sees() {
        for line in
            ["a \"$(b)\"", "a \"`b`\"", "a $HOME", "a \"b", "a 'b", "a \\' b", "a \"\\\" ; b\"", "a \"b\";c", "a *"]
        {
            assert!(meant(line).contains(MEANINGS), "{line}");
        }
        for line in ["a '$(b)' \";\"", "a \"'\" '\"'", "a b=c"] {
            assert!(!meant(line).contains(MEANINGS), "{line}");
        }
    }
}
