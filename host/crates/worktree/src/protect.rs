//! Protected paths: files that run or grant something even if the project's own program is never started.
//!
//! A build or a test runs an agent's code, and its user knows that. Protected files run when a directory is entered, an
//! editor opened, a commit made or pushed, or they say what Longhaul itself may start. Paths are compared as the most
//! forgiving file system reads them: without letter case, and without characters that HFS+ ignores. Ordinary text,
//! including `AGENTS.md` and `.gitignore`, is not protected: it starts nothing. Refuses to decide if a change is
//! allowed.

use crate::glob::Glob;
use crate::names::IGNORED_BY_HFS;
use crate::scan::{Base, ChangeKind, Entry, FileChange, Mode, Scan};
use crate::{Tree, TreeError, UserRepository};
use git2::Repository;
use std::cell::Cell;
use std::sync::Arc;

/// Patterns with the purposes of their files. As in `.gitignore`, a pattern without a slash applies in every directory,
/// one with a slash from the top of the tree.
pub const PROTECTED: &[(&str, &str)] = &[
    ("/longhaul.toml", "says which commands, hosts and directories Longhaul uses"),
    ("/plugins/**/*.wasm", "is a component that Longhaul may be told to run"),
    ("/.github/workflows/**", "runs on a CI server, with its secrets"),
    ("/.github/actions/**", "runs on a CI server, with its secrets"),
    ("/.forgejo/workflows/**", "runs on a CI server, with its secrets"),
    ("/.gitea/workflows/**", "runs on a CI server, with its secrets"),
    (".gitlab-ci.yml", "runs on a CI server, with its secrets"),
    ("/.gitlab/**", "may be included by a pipeline, and says who reviews"),
    ("/.circleci/**", "runs on a CI server, with its secrets"),
    ("/.buildkite/**", "runs on a CI server, with its secrets"),
    ("/.woodpecker/**", "runs on a CI server, with its secrets"),
    ("/.woodpecker.y*ml", "runs on a CI server, with its secrets"),
    ("/.drone.y*ml", "runs on a CI server, with its secrets"),
    ("/.travis.yml", "runs on a CI server, with its secrets"),
    ("/.cirrus.yml", "runs on a CI server, with its secrets"),
    ("/.ci/**", "runs on a CI server, with its secrets"),
    ("/appveyor.yml", "runs on a CI server, with its secrets"),
    ("azure-pipelines.yml", "runs on a CI server, with its secrets"),
    ("bitbucket-pipelines.yml", "runs on a CI server, with its secrets"),
    ("cloudbuild.y*ml", "runs on a CI server, with its secrets"),
    ("Jenkinsfile", "runs on a CI server, with its secrets"),
    ("CODEOWNERS", "says who must review which files"),
    (".gitmodules", "says where git fetches other repositories from"),
    (".gitattributes", "chooses programs that git runs on files"),
    (".lfsconfig", "says where git sends and fetches large files"),
    ("**/.githooks/**", "runs when somebody commits or pushes"),
    ("**/.husky/**", "runs when somebody commits or pushes"),
    (".pre-commit-config.y*ml", "runs when somebody commits or pushes"),
    (".pre-commit-hooks.yaml", "runs when somebody commits or pushes"),
    ("lefthook*.y*ml", "runs when somebody commits or pushes"),
    (".lefthook*.y*ml", "runs when somebody commits or pushes"),
    (".overcommit.yml", "runs when somebody commits or pushes"),
    (".lintstagedrc*", "runs when somebody commits"),
    ("lint-staged.config.*", "runs when somebody commits"),
    (".envrc", "runs when somebody enters the directory"),
    ("mise.toml", "runs when somebody enters the directory"),
    (".mise.toml", "runs when somebody enters the directory"),
    ("**/.mise/**", "runs when somebody enters the directory"),
    ("**/.vscode/**", "runs tasks, and chooses programs, when an editor opens the directory"),
    ("*.code-workspace", "runs tasks, and chooses programs, when an editor opens the directory"),
    ("**/.idea/**", "runs tasks, and chooses programs, when an editor opens the directory"),
    ("**/.zed/**", "runs tasks, and chooses programs, when an editor opens the directory"),
    ("**/.fleet/**", "runs tasks, and chooses programs, when an editor opens the directory"),
    (".nvim.lua", "runs when an editor opens the directory"),
    (".exrc", "runs when an editor opens the directory"),
    (".nvimrc", "runs when an editor opens the directory"),
    (".dir-locals.el", "runs when an editor opens the directory"),
    ("**/.devcontainer/**", "builds and runs a container when an editor opens the directory"),
    (".devcontainer.json", "builds and runs a container when an editor opens the directory"),
    (".gitpod.yml", "runs when a workspace is opened"),
    ("**/.claude/**", "gives tools, hooks and leave to another agent"),
    ("**/.cursor/**", "gives tools, hooks and leave to another agent"),
    ("**/.codex/**", "gives tools, hooks and leave to another agent"),
    ("**/.gemini/**", "gives tools, hooks and leave to another agent"),
    (".mcp.json", "starts servers for another agent"),
    ("**/.cargo/config", "replaces programs that cargo starts, in an editor too"),
    ("**/.cargo/config.toml", "replaces programs that cargo starts, in an editor too"),
    ("rust-toolchain", "chooses the compiler, which may lie in the tree, in an editor too"),
    ("rust-toolchain.toml", "chooses the compiler, which may lie in the tree, in an editor too"),
    (".tool-versions", "chooses programs, which may lie in the tree, when somebody enters the directory"),
    (".npmrc", "says whom packages are fetched from, and with which secrets"),
    (".yarnrc", "says whom packages are fetched from, and what runs in place of yarn"),
    (".yarnrc.yml", "says whom packages are fetched from, and what runs in place of yarn"),
    (".pnpmfile.cjs", "runs whenever packages are installed"),
    (".pypirc", "says whom packages are sent to"),
    ("pip.conf", "says whom packages are fetched from"),
];

/// Links that Linux follows to one file.
const LINKS_MAX: usize = 40;

/// The protected files of a tree. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Protected {
    rules: Arc<[Rule]>,
    allowed: Arc<[Glob]>,
}

#[derive(Debug)]
struct Rule {
    glob: Glob,
    /// The directories above the named files: a file or a link in the place of one decides what is there.
    above: Vec<Glob>,
    why: String,
}

/// A change of a protected file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ProtectedChange {
    /// The path, as in [`FileChange::path`].
    pub path: String,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The file's purpose: follows the path in a sentence.
    pub why: String,
}

impl Protected {
    /// The default list with further paths, without those that agents may change unasked.
    #[must_use]
    pub fn new(further: &[(String, String)], allowed: &[String]) -> Self {
        let listed = PROTECTED.iter().map(|(pattern, why)| Rule::of(pattern, why));
        let rules = listed.chain(further.iter().map(|(pattern, why)| Rule::of(pattern, why))).collect();
        Self { rules, allowed: allowed.iter().map(|pattern| glob(&anchored(pattern))).collect() }
    }

    /// The changes of protected files among `changes`.
    #[must_use]
    pub fn among(&self, changes: &[FileChange]) -> Vec<ProtectedChange> {
        let protected = |change: &FileChange| {
            let why = self.why(&change.raw)?;
            Some(ProtectedChange { path: change.path.clone(), kind: change.kind, why: why.to_owned() })
        };
        changes.iter().filter_map(protected).collect()
    }

    /// The protected ones of `paths`, which have the form of [`FileChange::path`].
    #[must_use]
    pub fn among_paths(&self, paths: &[String]) -> Vec<String> {
        paths.iter().filter(|path| self.why(path.as_bytes()).is_some()).cloned().collect()
    }

    /// The targets of these links, each for the reason of the link.
    fn behind(&self, repo: &Repository, links: &[(&Vec<u8>, &Entry)]) -> Result<Self, TreeError> {
        let mut rules = Vec::new();
        for (path, entry) in links {
            let Some(why) = self.why(path) else { continue };
            let blob = repo.find_blob(entry.id).map_err(TreeError::git("read a blob"))?;
            let target = pattern_of(&String::from_utf8_lossy(&target_of(path, blob.content())));
            rules.extend([Rule::of(&target, why), Rule::of(&format!("{target}/**"), why)]);
        }
        Ok(Self { rules: rules.into(), allowed: Arc::clone(&self.allowed) })
    }

    fn why(&self, path: &[u8]) -> Option<&str> {
        let steps = Cell::new(0);
        let path = folded(path);
        if self.allowed.iter().any(|glob| glob.matches(&path, false, &steps)) {
            return None;
        }
        let names = |rule: &&Rule| {
            rule.glob.matches(&path, false, &steps) || rule.above.iter().any(|glob| glob.matches(&path, false, &steps))
        };
        self.rules.iter().find(names).map(|rule| rule.why.as_str())
    }
}

impl Tree {
    /// The changes against the commit `parent`, and those of protected files among them: also of files that a protected
    /// path of the commit leads to by symbolic links, over as many as a system follows.
    ///
    /// # Errors
    /// As [`Tree::scan`].
    pub fn protected(
        &self,
        project: &UserRepository,
        parent: &str,
        rules: &Protected,
    ) -> Result<(Scan, Vec<ProtectedChange>), TreeError> {
        let scan = self.scan(project, parent)?;
        let repo = project.repo()?;
        let base = Base::read(&repo, parent, self.caps())?;
        let mut links: Vec<_> = base.files.iter().filter(|(_, entry)| entry.mode == Mode::Link).collect();
        let mut found = rules.among(&scan.changes);
        let mut reached = rules.clone();
        for _ in 0..LINKS_MAX {
            let (followed, others): (Vec<_>, Vec<_>) =
                links.into_iter().partition(|(path, _)| reached.why(path).is_some());
            links = others;
            if followed.is_empty() {
                break;
            }
            reached = reached.behind(&repo, &followed)?;
            found.extend(reached.among(&scan.changes));
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        Ok((scan, found))
    }
}

/// The pattern that matches a path from the top of the tree, and nothing else.
#[must_use]
pub fn pattern_of(path: &str) -> String {
    let mut pattern = String::from("/");
    for character in path.chars() {
        if matches!(character, '*' | '?' | '[' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// The target of a link in the tree, from its top. A link that leaves the tree leads to its top.
fn target_of(path: &[u8], target: &[u8]) -> Vec<u8> {
    let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    names.pop();
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join(&b'/')
}

impl Rule {
    fn of(pattern: &str, why: &str) -> Self {
        let pattern = anchored(pattern);
        let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
        let above = (1..parts.len()).filter(|end| parts[end - 1] != "**").map(|end| glob(&parts[..end].join("/")));
        Self { glob: glob(&pattern), above: above.collect(), why: why.to_owned() }
    }
}

/// The pattern from the top of the tree.
fn anchored(pattern: &str) -> String {
    if pattern.contains('/') { pattern.to_owned() } else { format!("**/{pattern}") }
}

fn glob(pattern: &str) -> Glob {
    Glob::parse(&folded(pattern.as_bytes()))
}

/// A path as a file system without letter case reads it. Bytes that are no text stay unchanged.
fn folded(path: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(path) {
        Ok(text) => {
            let seen: String = text.chars().filter(|character| !IGNORED_BY_HFS.contains(character)).collect();
            seen.to_lowercase().into_bytes()
        }
        Err(_) => path.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(protected: &Protected, expected: bool, paths: &[&str]) {
        for path in paths {
            assert_eq!(protected.why(path.as_bytes()).is_some(), expected, "{path}");
        }
    }

    #[test]
    fn what_starts_something_is_protected_and_what_a_feature_writes_is_not() {
        let protected = Protected::new(&[("/deploy.sh".into(), "is started by [notify]".into())], &[]);
        check(
            &protected,
            true,
            &[
                "longhaul.toml",
                "LONGHAUL.TOML",
                "plugins/judge.wasm",
                "plugins/a/b.wasm",
                ".github/workflows/ci.yml",
                ".GitHub/Workflows/ci.yml",
                ".github",
                ".github/workflows",
                ".envrc",
                "deep/down/.envrc",
                ".env\u{200c}rc",
                ".gitmodules",
                "a/.gitattributes",
                "a/.vscode/tasks.json",
                "a/.vscode",
                ".husky/pre-commit",
                "sub/.husky",
                ".cargo/config.toml",
                "crates/a/.cargo/config",
                "crates/a/.cargo",
                ".pre-commit-config.yaml",
                ".pre-commit-config.yml",
                ".devcontainer/Dockerfile",
                "docs/CODEOWNERS",
                "rust-toolchain.toml",
                "crates/a/rust-toolchain",
                ".tool-versions",
                "plugins",
                "deploy.sh",
            ],
        );
        check(
            &protected,
            false,
            &[
                "src/main.rs",
                "Cargo.toml",
                "package.json",
                "Makefile",
                "docs/longhaul.toml.md",
                "docs/longhaul.toml",
                "plugins/http-fetch/src/lib.rs",
                ".github/ISSUE_TEMPLATE.md",
                ".gitignore",
                ".env",
                "AGENTS.md",
                "envrc",
                "src/deploy.sh",
                "workflows/ci.yml",
                "cargo/config.toml",
            ],
        );
    }

    #[test]
    fn a_link_leads_from_its_own_directory() {
        for (path, target, expected) in [
            (".envrc", "env/dev", "env/dev"),
            ("a/.envrc", "../env/./dev", "env/dev"),
            ("a/.vscode", "b", "a/b"),
            (".envrc", "../../x", "x"),
        ] {
            assert_eq!(target_of(path.as_bytes(), target.as_bytes()), expected.as_bytes(), "{path} {target}");
        }
        assert_eq!(pattern_of("a[1]*.sh"), "/a\\[1]\\*.sh");
    }

    #[test]
    fn the_operator_adds_paths_and_allows_some() {
        let allowed = ["**/.vscode/**", "/.github/workflows/docs.yml", "/infra/dev/**"].map(str::to_owned);
        let protected = Protected::new(&[("/infra/**".into(), "is listed in [protect]".into())], &allowed);
        check(&protected, true, &["infra/a.tf", ".github/workflows/ci.yml"]);
        check(&protected, false, &["a/.vscode/tasks.json", ".github/workflows/docs.yml", "infra/dev/a.tf"]);
    }
}
