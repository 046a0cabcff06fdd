//! Git as agents' programs get it: with the configuration switched off that starts other programs.
//!
//! The tree of a run has no `.git`, but an agent can make one, and write into it which monitor, hook, pager, filter or
//! driver git starts. So every program gets the settings below by its environment, which git puts above all files. Git
//! itself also gets one for each filter, driver and alias that the repositories on its way name. Refuses a repository
//! whose configuration includes other files: what stands in those is not looked for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Settings that start nothing, each with the value that git takes for none.
const SETTINGS: &[(&str, &str)] = &[
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("sequence.editor", "true"),
    ("core.sshCommand", "false"),
    ("core.askPass", ""),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", "true"),
    ("core.attributesFile", "/dev/null"),
    ("credential.helper", ""),
    ("protocol.ext.allow", "never"),
    ("protocol.file.allow", "user"),
    ("gpg.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.x509.program", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("interactive.diffFilter", "cat"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("init.templateDir", ""),
    ("safe.bareRepository", "explicit"),
];

/// Variables of the same purpose.
const VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
];

/// Settings of one repository that are switched off, and bytes of its configuration that are read.
const NAMED_MAX: usize = 500;
const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// The environment of every program, under what the operator set.
pub(super) fn environment() -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> =
        VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    add(&mut env, settings);
    env
}

/// Whether a program is git, by its name.
pub(super) fn is_git(program: &Path) -> bool {
    program.file_name().is_some_and(|name| name == "git")
}

/// Switches off what the repositories name that git would find from `cwd` up to the top of the tree.
///
/// # Errors
/// What is wrong with such a repository, with the remedy.
pub(super) fn switch_off(env: &mut BTreeMap<String, String>, tree: &Path, cwd: &Path) -> Result<(), String> {
    let start = tree.join(cwd);
    for directory in start.ancestors().take_while(|above| above.starts_with(tree)) {
        for file in configurations(&directory.join(".git")) {
            let named = named(&read(&file)?).map_err(|why| format!("`{}` {why}", shown(&file, tree)))?;
            add(env, named);
        }
    }
    Ok(())
}

/// Adds settings behind those that are there.
fn add(env: &mut BTreeMap<String, String>, settings: impl IntoIterator<Item = (String, String)>) {
    let mut count: usize = env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
    for (key, value) in settings {
        env.insert(format!("GIT_CONFIG_KEY_{count}"), key);
        env.insert(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    env.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
}

/// The files of configuration of a repository whose directory, or file that points to it, is `git`.
fn configurations(git: &Path) -> Vec<PathBuf> {
    let target = |file: &Path, start: &str| -> Option<PathBuf> {
        let text = std::fs::read_to_string(file).ok()?;
        Some(file.parent()?.join(text.trim().strip_prefix(start)?.trim()))
    };
    let directory = if git.is_file() { target(git, "gitdir:").unwrap_or_default() } else { git.to_owned() };
    let common = target(&directory.join("commondir"), "");
    let places = [Some(directory), common].into_iter().flatten();
    let files = places.flat_map(|place| [place.join("config"), place.join("config.worktree")]);
    files.filter(|file| file.is_file()).collect()
}

fn read(file: &Path) -> Result<String, String> {
    let is_short = file.metadata().is_ok_and(|found| found.len() <= CONFIG_BYTES_MAX);
    let text = std::fs::read(file).ok().filter(|_| is_short);
    let text = text.ok_or_else(|| format!("`{}` cannot be read, so git is not started; remove it", file.display()))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn shown(file: &Path, tree: &Path) -> String {
    crate::arguments::shown(&file.strip_prefix(tree).unwrap_or(file).to_string_lossy())
}

/// What a configuration names that git would start, switched off. Every `[` may begin a section and every word before
/// an `=` may be a key: more is switched off than git would read, and never less.
fn named(text: &str) -> Result<BTreeSet<(String, String)>, String> {
    let lower = text.to_ascii_lowercase();
    let mut found = BTreeSet::new();
    let mut off = |key: String, value: &str| {
        found.insert((key, value.to_owned()));
    };
    for (section, name) in sections(text) {
        match (section.as_str(), name) {
            ("include" | "includeif", _) => {
                return Err("includes other configuration, so git is not started; remove [include] from it".to_owned());
            }
            ("filter", Some(name)) => {
                for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                    off(format!("filter.{name}.{key}"), value);
                }
            }
            ("diff", Some(name)) => {
                off(format!("diff.{name}.textconv"), "cat");
                if lower.contains("command") {
                    off(format!("diff.{name}.command"), "");
                }
            }
            // With none at all git compares by itself; an empty one is an error of git's.
            ("diff", None) if lower.contains("external") => off("diff.external".to_owned(), ""),
            ("merge", Some(name)) => off(format!("merge.{name}.driver"), "false"),
            ("credential", Some(name)) => off(format!("credential.{name}.helper"), ""),
            ("alias", _) => keys(text).for_each(|key| off(format!("alias.{key}"), "")),
            ("remote", Some(name)) => {
                for key in ["uploadpack", "receivepack"] {
                    off(format!("remote.{name}.{key}"), "false");
                }
            }
            _ => {}
        }
    }
    if found.len() > NAMED_MAX {
        return Err(format!("names {} programs of at most {NAMED_MAX}, so git is not started", found.len()));
    }
    Ok(found)
}

/// The sections that may begin anywhere in a text, in lower case, with the names in them.
fn sections(text: &str) -> impl Iterator<Item = (String, Option<String>)> {
    text.match_indices('[').filter_map(|(at, _)| section(&text[at + 1..]))
}

/// `filter "NAME"]` or `filter.name]`.
fn section(text: &str) -> Option<(String, Option<String>)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')))?;
    let (head, rest) = (text[..end].to_ascii_lowercase(), text[end..].trim_start());
    if let Some(quoted) = rest.strip_prefix('"') {
        let (mut name, mut chars) = (String::new(), quoted.chars());
        loop {
            match chars.next()? {
                '"' => return Some((head, Some(name))),
                '\\' => name.push(chars.next()?),
                '\n' => return None,
                char => name.push(char),
            }
        }
    }
    let (section, name) = head.split_once('.').map_or((head.as_str(), None), |(a, b)| (a, Some(b.to_owned())));
    Some((section.to_owned(), name))
}

/// Every word that may be a key.
fn keys(text: &str) -> impl Iterator<Item = String> {
    // Git takes no key that begins otherwise, and stops where it is told one.
    let is_key = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, '=' | ']' | '#' | ';'));
    words.filter(is_key).map(str::to_ascii_lowercase).collect::<BTreeSet<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_configuration_names_is_switched_off_however_it_is_written() {
        for (text, expected) in [
            ("[filter \"evil\"]\n\tclean = x", "filter.evil.clean"),
            ("[core] [FILTER \"evil\"] clean=x", "filter.evil.clean"),
            ("[filter.evil]\nprocess = x", "filter.evil.process"),
            ("[filter \"a\\\"b\"]\nsmudge = x", "filter.a\"b.smudge"),
            ("# [core]\n[diff \"e\"]textconv=x", "diff.e.textconv"),
            ("[diff \"e\"]\nCommand=x", "diff.e.command"),
            ("[diff]\nexternal = x", "diff.external"),
            ("[merge \"e\"]\ndriver = x", "merge.e.driver"),
            ("[alias]\n\tst = !x", "alias.st"),
            ("[credential \"https://a.example\"]\nhelper = !x", "credential.https://a.example.helper"),
            ("[remote \"o\"]\nuploadpack = x", "remote.o.uploadpack"),
        ] {
            let found = named(text).expect(text);
            assert!(found.iter().any(|(key, _)| key == expected), "{text}: {found:?}");
        }
        for text in ["[include]\npath = x", "[core]\n[INCLUDEIF \"gitdir:/\"]\npath = x"] {
            assert!(named(text).expect_err(text).contains("remove [include]"), "{text}");
        }
        assert!(named("[core]\nbare = false\n[branch \"main\"]\nremote = o").expect("plain").is_empty());
    }
}
