//! Git for agents' programs: the configuration that starts other programs is switched off.
//!
//! The tree of a run has no `.git`, but an agent can make one, and configure in it a monitor, hook, pager, filter or
//! driver that git starts. So every program gets the settings below by its environment, which git puts above all files.
//! Git itself also gets one for each filter, driver and alias that any repository in the tree names: git runs in nested
//! ones too. Refuses a repository whose configuration includes other files, since those are not read, and one with a
//! setting that cannot be overridden.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Settings that start nothing, each with the value that git reads as none.
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
    ("gpg.ssh.defaultKeyCommand", "false"),
    ("gpg.x509.program", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("merge.verifySignatures", "false"),
    ("interactive.diffFilter", "cat"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("init.templateDir", ""),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
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

/// The setting `[SECTION "NAME"] KEY` that starts a program, with a value that starts nothing.
const NAMED: &[(&str, &str, &str)] = &[
    ("browser", "cmd", "false"),
    ("browser", "path", "false"),
    ("credential", "helper", ""),
    ("diff", "command", ""),
    ("diff", "textconv", "cat"),
    ("difftool", "cmd", "false"),
    ("difftool", "path", "false"),
    ("filter", "clean", ""),
    ("filter", "process", ""),
    ("filter", "required", "false"),
    ("filter", "smudge", ""),
    ("hook", "command", "true"),
    ("hook", "enabled", "false"),
    ("man", "cmd", "false"),
    ("man", "path", "false"),
    ("merge", "driver", "false"),
    ("mergetool", "cmd", "false"),
    ("mergetool", "path", "false"),
    ("remote", "receivepack", "false"),
    ("remote", "uploadpack", "false"),
    ("submodule", "update", "checkout"),
    ("tar", "command", "false"),
    ("trailer", "cmd", "true"),
    ("trailer", "command", "true"),
];

/// The most settings that are switched off in one tree, bytes of a configuration that are read, and entries of the tree
/// that are examined. A tree holds at most 200 000 files that are not ignored.
const NAMED_MAX: usize = 500;
const CONFIG_BYTES_MAX: u64 = 1 << 20;
const ENTRIES_MAX: usize = 500_000;

/// Keys and values.
pub(super) type Settings = BTreeSet<(String, String)>;

/// The environment of every program, below the operator's own.
pub(super) fn environment() -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> =
        VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    add(&mut env, settings);
    env
}

/// True when a program is git, by its name or that of the file behind it.
pub(super) fn is_git(program: &Path) -> bool {
    let is_named =
        |path: &Path| path.file_name().is_some_and(|name| name == "git" || name.to_string_lossy().starts_with("git-"));
    is_named(program) || program.canonicalize().is_ok_and(|real| is_named(&real))
}

/// The settings that switch off every program that the repositories of a tree name.
///
/// No pointer to a repository is followed, be it a `.git` that is a file or a link, or a `commondir`: inside the
/// sandbox it leads elsewhere than here. Every directory that git could read as a repository is read, wherever it is.
///
/// # Errors
/// The fault of such a repository, with its remedy.
pub(super) fn named_in(tree: &Path) -> Result<Settings, String> {
    let mut found = Settings::new();
    for file in configurations(tree)? {
        let named = read(&file).and_then(|text| named(&text));
        found.extend(named.map_err(|why| format!("`{}` {why}", shown(&file, tree)))?);
    }
    if found.len() > NAMED_MAX {
        let count = found.len();
        return Err(format!("repositories of the tree name {count} programs of at most {NAMED_MAX}; remove some"));
    }
    Ok(found)
}

/// Adds settings after the existing ones.
pub(super) fn add(env: &mut BTreeMap<String, String>, settings: impl IntoIterator<Item = (String, String)>) {
    let mut count: usize = env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or(0);
    for (key, value) in settings {
        env.insert(format!("GIT_CONFIG_KEY_{count}"), key);
        env.insert(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    env.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
}

/// The configuration files of every possible repository, or of the part that worktrees share.
fn configurations(tree: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut found, mut waiting, mut seen) = (Vec::new(), vec![tree.to_owned()], 0);
    while let Some(dir) = waiting.pop() {
        let entries = entries(&dir).map_err(|error| {
            format!("`{}` cannot be listed ({error}), so git is not started; remove it", shown(&dir, tree))
        })?;
        seen += entries.len();
        if seen > ENTRIES_MAX {
            return Err(format!("the tree has more than {ENTRIES_MAX} files, so git is not started; remove some"));
        }
        let is_repository = entries.iter().any(|(path, _)| is_named(path, &["HEAD", "refs"]));
        for (path, is_dir) in entries {
            if is_dir {
                waiting.push(path);
            } else if is_repository && is_named(&path, &["config", "config.worktree"]) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The entries of a directory, and whether each is a directory. A directory that is gone by now has none.
fn entries(dir: &Path) -> std::io::Result<Vec<(PathBuf, bool)>> {
    let read = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let entry = |entry: std::io::Result<std::fs::DirEntry>| -> std::io::Result<_> {
        let entry = entry?;
        Ok((entry.path(), entry.file_type()?.is_dir()))
    };
    read.take(ENTRIES_MAX + 1).map(entry).collect()
}

/// True when a path ends in one of these names, on a file system without letter case too.
fn is_named(path: &Path, names: &[&str]) -> bool {
    path.file_name().is_some_and(|name| names.iter().any(|one| name.eq_ignore_ascii_case(one)))
}

fn read(file: &Path) -> Result<String, String> {
    let refused = |what: &str| format!("{what}, so git is not started; remove it or write it anew");
    let is_short = |found: std::fs::Metadata| found.is_file() && found.len() <= CONFIG_BYTES_MAX;
    if !file.symlink_metadata().is_ok_and(is_short) {
        return Err(refused("is no file of at most 1 MiB"));
    }
    let bytes = std::fs::read(file).map_err(|_| refused("cannot be read"))?;
    // A name in other bytes cannot be set by a text variable.
    String::from_utf8(bytes).map_err(|_| refused("is no text in UTF-8"))
}

fn shown(file: &Path, tree: &Path) -> String {
    crate::arguments::shown(&file.strip_prefix(tree).unwrap_or(file).to_string_lossy())
}

/// The settings that switch off the programs of a configuration. Every `[` may begin a section and every word may be a
/// key: more is switched off than git would read, and never less.
fn named(text: &str) -> Result<Settings, String> {
    let lower = text.to_ascii_lowercase();
    let mut found = Settings::new();
    for (section, name) in sections(text) {
        match (section.as_str(), &name) {
            ("include" | "includeif", _) => {
                return Err("includes other configuration, so git is not started; remove [include] from it".to_owned());
            }
            // Every named one runs, and not only the last.
            ("gc", _) if lower.contains("recentobjectshook") => {
                return Err("names a hook, so git is not started; remove gc.recentObjectsHook from it".to_owned());
            }
            // Without any value git compares by itself; an empty one is an error for git.
            ("diff", None) if lower.contains("external") => found.extend([off("diff.external", "")]),
            ("alias", None) => found.extend(keys(text).map(|key| off(&format!("alias.{key}"), ""))),
            ("alias", Some(name)) => found.extend(keys(text).map(|key| off(&format!("alias.{name}.{key}"), ""))),
            _ => {}
        }
        let Some(name) = name else { continue };
        let of_section = NAMED.iter().filter(|(of, key, _)| *of == section && lower.contains(*key));
        found.extend(of_section.map(|(_, key, value)| off(&format!("{section}.{name}.{key}"), value)));
    }
    Ok(found)
}

fn off(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// The sections that may begin anywhere in a text, in lower case, with the names in them.
fn sections(text: &str) -> impl Iterator<Item = (String, Option<String>)> {
    text.match_indices('[').filter_map(|(at, _)| section(&text[at + 1..]))
}

/// `filter "NAME"]`, `filter.name]` or, for `name.NAME`, `filter.name "NAME"]`.
fn section(text: &str) -> Option<(String, Option<String>)> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')))?;
    let (head, rest) = (text[..end].to_ascii_lowercase(), text[end..].trim_start());
    let (section, dotted) = head.split_once('.').map_or((head.as_str(), None), |(section, name)| (section, Some(name)));
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut name = dotted.map(|dotted| format!("{dotted}.")).unwrap_or_default();
        let mut chars = quoted.chars();
        loop {
            match chars.next()? {
                '"' => return Some((section.to_owned(), Some(name))),
                '\\' => name.push(chars.next()?),
                '\n' => return None,
                char => name.push(char),
            }
        }
    }
    Some((section.to_owned(), dotted.map(str::to_owned)))
}

/// Every word that may be a key.
fn keys(text: &str) -> impl Iterator<Item = String> {
    // Git accepts no key with another first character, and stops at such a one.
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
            ("[filter.Sub \"evil\"]\nclean = x", "filter.sub.evil.clean"),
            ("[filter \"a\\\"b\"]\nsmudge = x", "filter.a\"b.smudge"),
            ("# [core]\n[diff \"e\"]textconv=x", "diff.e.textconv"),
            ("[diff \"e\"]\nCommand=x", "diff.e.command"),
            ("[diff]\nexternal = x", "diff.external"),
            ("[merge \"e\"]\ndriver = x", "merge.e.driver"),
            ("[alias]\n\tst = !x", "alias.st"),
            ("[alias \"st\"]\n\tcommand = !x", "alias.st.command"),
            ("[alias \"a\"]\n\tb = !x", "alias.a.b"),
            ("[hook \"e\"]\nevent = pre-commit\ncommand = x", "hook.e.command"),
            ("[submodule \"e\"]\nupdate = !x", "submodule.e.update"),
            ("[credential \"https://a.example\"]\nhelper = !x", "credential.https://a.example.helper"),
            ("[remote \"o\"]\nuploadpack = x", "remote.o.uploadpack"),
        ] {
            let found = named(text).expect(text);
            assert!(found.iter().any(|(key, _)| key == expected), "{text}: {found:?}");
        }
        for text in ["[include]\npath = x", "[core]\n[INCLUDEIF \"gitdir:/\"]\npath = x"] {
            assert!(named(text).expect_err(text).contains("remove [include]"), "{text}");
        }
        let told = named("[gc]\nrecentObjectsHook = x").expect_err("no setting takes it back");
        assert!(told.contains("remove gc.recentObjectsHook"), "{told}");
        assert!(named("[core]\nbare = false\n[branch \"main\"]\nremote = o").expect("plain").is_empty());
    }
}
