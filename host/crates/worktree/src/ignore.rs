//! The rules of `.gitignore` files.
//!
//! The files of the tree count, not those of the user's checkout: an agent that begins a project writes its own. Below
//! them are `.git/info/exclude` and the user's `core.excludesFile`. As in git, a `.gitignore` that is a link is not
//! read. Done here and not by libgit2, which follows links and can be made to take exponential time. Refuses files and
//! work beyond a cap; does not support `[[:alpha:]]`.

use crate::TreeError;
use crate::caps::cap;
use crate::glob::Glob;
use crate::names::{join, shown};
use crate::root::{EntryKind, EntryStamp, Root};
use git2::Repository;
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

/// Bytes of one `.gitignore`. The largest collections have a tenth of it.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Steps of matching in one scan: some seconds.
const STEPS_MAX: u64 = 1_000_000_000;

/// The rules of a directory: its own, and those above it.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Rc<Rules>>,
    dir: Vec<u8>,
    list: Vec<Rule>,
    /// The file of the rules, for people.
    file: String,
}

#[derive(Debug)]
struct Rule {
    glob: Glob,
    /// The line as written.
    line: Vec<u8>,
    /// `!`
    is_kept: bool,
    /// Ends in `/`.
    is_for_dirs: bool,
    /// Has a `/` elsewhere: relative to the directory of the file. Otherwise it matches a name anywhere.
    is_anchored: bool,
}

impl Rules {
    /// The rules of the whole repository.
    pub(crate) fn of_repository(repo: &Repository) -> Rc<Self> {
        let users = users_file(repo);
        let file = users.as_ref().map_or_else(String::new, |path| path.display().to_string());
        let user = Self { above: None, dir: Vec::new(), list: users.map_or_else(Vec::new, read_list), file };
        let list = read_list(repo.commondir().join("info/exclude"));
        Rc::new(Self { above: Some(Rc::new(user)), dir: Vec::new(), list, file: ".git/info/exclude".to_owned() })
    }

    /// Adds those of the `.gitignore` in `dir`, if there is one.
    pub(crate) fn within(self: &Rc<Self>, root: &Root, dir: &[u8]) -> Result<Rc<Self>, TreeError> {
        let path = join(dir, b".gitignore");
        let failed = || TreeError::io("read", root.path(&path));
        let Some(EntryStamp { sort: EntryKind::File { .. }, len, .. }) = root.stamp(&path).map_err(failed())? else {
            return Ok(Rc::clone(self));
        };
        cap("ignore_file_bytes_max", len, FILE_BYTES_MAX, &path)?;
        let text = root.read(&path, FILE_BYTES_MAX).map_err(failed())?.unwrap_or_default();
        let list = parse(&text);
        Ok(Rc::new(Self { above: Some(Rc::clone(self)), dir: dir.to_vec(), list, file: shown(&path) }))
    }

    /// True when `path` is ignored, given that no directory above it is: the last rule of the nearest file decides.
    pub(crate) fn cover(&self, path: &[u8], is_dir: bool, steps: &Cell<u64>) -> Result<bool, TreeError> {
        Ok(self.deciding(path, is_dir, steps)?.is_some_and(|(_, rule)| !rule.is_kept))
    }

    /// The rule that ignores `path`, for people, given that no directory above it is ignored.
    pub(crate) fn covering(&self, path: &[u8], is_dir: bool, steps: &Cell<u64>) -> Result<Option<String>, TreeError> {
        let found = self.deciding(path, is_dir, steps)?.filter(|(_, rule)| !rule.is_kept);
        Ok(found.map(|(rules, rule)| format!("`{}` in `{}`", shown(&rule.line), rules.file)))
    }

    fn deciding(&self, path: &[u8], is_dir: bool, steps: &Cell<u64>) -> Result<Option<(&Self, &Rule)>, TreeError> {
        let mut rules = Some(self);
        while let Some(here) = rules {
            let below = if here.dir.is_empty() { path } else { path.get(here.dir.len() + 1..).unwrap_or_default() };
            if let Some(rule) = here.list.iter().rev().find(|rule| rule.covers(below, is_dir, steps)) {
                return Ok(Some((here, rule)));
            }
            cap("ignore_steps_max", steps.get(), STEPS_MAX, path)?;
            rules = here.above.as_deref();
        }
        Ok(None)
    }
}

impl Rule {
    fn covers(&self, path: &[u8], is_dir: bool, steps: &Cell<u64>) -> bool {
        if self.is_for_dirs && !is_dir {
            return false;
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.glob.matches(if self.is_anchored { path } else { name }, false, steps)
    }
}

fn parse(text: &[u8]) -> Vec<Rule> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Rule> {
    let line = without_trailing_spaces(line.strip_suffix(b"\r").unwrap_or(line));
    if line.is_empty() || line.starts_with(b"#") {
        return None;
    }
    let written = line.to_vec();
    let (is_kept, line) = line.strip_prefix(b"!").map_or((false, line), |line| (true, line));
    let (is_for_dirs, line) = line.strip_suffix(b"/").map_or((false, line), |line| (true, line));
    Some(Rule { glob: Glob::parse(line), line: written, is_kept, is_for_dirs, is_anchored: line.contains(&b'/') })
}

/// Keeps a space after a backslash.
fn without_trailing_spaces(mut line: &[u8]) -> &[u8] {
    while line.ends_with(b" ") && !line.ends_with(b"\\ ") {
        line = &line[..line.len() - 1];
    }
    line
}

fn read_list(path: PathBuf) -> Vec<Rule> {
    // The user's own files; an unreadable one has no rules, as in git.
    std::fs::read(path).map_or_else(|_| Vec::new(), |text| parse(&text))
}

fn users_file(repo: &Repository) -> Option<PathBuf> {
    let set = repo.config().and_then(|mut config| config.snapshot()?.get_path("core.excludesfile")).ok();
    let config = || {
        let set = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
        set.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))
    };
    set.or_else(|| Some(config()?.join("git/ignore")))
}
