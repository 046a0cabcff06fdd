//! A new project: a small plugin that builds at once, in the requested language and for the requested role.
//!
//! The files come from `sdk/templates`: files beside the folders of the roles are for all roles of a language,
//! `scenarios/ROLE` is for all languages. The SDK and the contract are copied into `vendor`, laid out as in the
//! repository, so that the project needs only its language's own tools. A project in C has the header of its world's
//! bindings there too, so that editors find the types; a build generates its own. An existing file is never
//! overwritten.

use crate::c;
use crate::cache::create_dir;
use crate::component::Contract;
use crate::error::{AtPath, BuildError};
use crate::language::PluginLanguage;
use crate::names::check_name;
use crate::sources::{below, put};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

type Result<T> = std::result::Result<T, BuildError>;

/// The folder of a project for the SDK and the contract.
const VENDOR: &str = "vendor";

/// The role of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PluginKind {
    /// Does one task.
    Agent,
    /// Turns a goal into steps.
    Planner,
    /// Has functions that agents call.
    Tool,
    /// Judges a result.
    Evaluator,
    /// Keeps entries.
    Memory,
}

impl PluginKind {
    /// All roles.
    pub const ALL: [Self; 5] = [Self::Agent, Self::Planner, Self::Tool, Self::Evaluator, Self::Memory];

    /// The word of the role; its world is `WORD-plugin`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Planner => "planner",
            Self::Tool => "tool",
            Self::Evaluator => "evaluator",
            Self::Memory => "memory",
        }
    }
}

impl FromStr for PluginKind {
    type Err = BuildError;

    fn from_str(word: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word).ok_or_else(|| {
            BuildError::project(format!(
                "there is no kind `{}` of plugin; write one of: agent, planner, tool, evaluator, memory",
                word.escape_default()
            ))
        })
    }
}

/// A project before it is written.
#[derive(Clone, Debug)]
pub struct Draft {
    name: String,
    kind: PluginKind,
    language: PluginLanguage,
}

impl Draft {
    /// A draft of a plugin named `name`.
    ///
    /// # Errors
    /// When the name is invalid; see [`check_name`].
    pub fn new(name: &str, kind: PluginKind, language: PluginLanguage) -> Result<Self> {
        check_name(name)?;
        Ok(Self { name: name.to_owned(), kind, language })
    }

    /// Writes the project to the folder of its name in `parent`, and returns that folder.
    ///
    /// # Errors
    /// When the folder exists already, or cannot be written; then nothing is left of it.
    pub fn write(&self, parent: &Path) -> Result<PathBuf> {
        let dir = parent.join(&self.name);
        if dir.symlink_metadata().is_ok() {
            return Err(BuildError::project(format!(
                "`{}` is there already; take another name, or another folder with --into",
                dir.display()
            )));
        }
        create_dir(parent)?;
        // The complete folder is renamed into place.
        let partial = parent.join(format!(".{}.{}.tmp", self.name, std::process::id()));
        let written = self.files().try_for_each(|(path, bytes)| put(&partial.join(path), &bytes));
        let completed = written.and_then(|()| self.write_header(&partial));
        let placed = completed.and_then(|()| fs::rename(&partial, &dir).at("write", &dir));
        if placed.is_err() {
            // The error is reported already.
            let _ = fs::remove_dir_all(&partial);
        }
        placed.map(|()| dir)
    }

    /// All files, with their paths in the project.
    fn files(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        let (language, kind) = (self.language.folder(), self.kind.word());
        let of_language = format!("sdk/templates/{language}");
        let shared = below(&of_language).filter(|(path, _)| !path.contains('/')).collect::<Vec<_>>();
        let own = below(&format!("{of_language}/{kind}")).collect::<Vec<_>>();
        let scenarios = below(&format!("sdk/templates/scenarios/{kind}")).collect::<Vec<_>>();
        let sdk = below(&format!("sdk/{language}")).collect::<Vec<_>>();
        let contract = below("wit/v0.1").collect::<Vec<_>>();
        let filled = shared.into_iter().chain(own).map(|(path, bytes)| (file_name(path), self.fill(bytes)));
        let tests = scenarios.into_iter().map(|(path, bytes)| (format!("tests/{path}"), self.fill(bytes)));
        let sdk = sdk.into_iter().map(move |(path, bytes)| (format!("{VENDOR}/sdk/{language}/{path}"), bytes.to_vec()));
        let contract = contract.into_iter().map(|(path, bytes)| (format!("{VENDOR}/wit/v0.1/{path}"), bytes.to_vec()));
        filled.chain(tests).chain(sdk).chain(contract)
    }

    /// Writes the header of the bindings for C, for editors. It is generated from the contract in `project`.
    fn write_header(&self, project: &Path) -> Result<()> {
        if self.language != PluginLanguage::C {
            return Ok(());
        }
        let (vendor, world) = (project.join(VENDOR), format!("{}-plugin", self.kind.word()));
        let folder = vendor.join("sdk/c/bindings").join(&world);
        c::write_header(&Contract::load(&vendor)?, &self.name, &world, &folder)
    }

    fn fill(&self, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        text.replace("{{name}}", &self.name).replace("{{kind}}", self.kind.word()).into_bytes()
    }
}

/// The file name of a template's path. A template's file is not hidden, since a hidden one would take effect in the
/// templates' folder.
fn file_name(path: &str) -> String {
    if path == "gitignore" { ".gitignore".to_owned() } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::PluginProject;

    #[test]
    fn every_language_has_a_project_of_every_kind_that_can_be_read() {
        let place = tempfile::tempdir().unwrap();
        for language in PluginLanguage::ALL {
            for kind in PluginKind::ALL {
                let name = format!("my-{}-{}", language.word(), kind.word());
                let dir = Draft::new(&name, kind, language).unwrap().write(place.path()).unwrap();
                let project = PluginProject::open(&dir).unwrap();
                assert_eq!((project.name(), project.language()), (name.as_str(), language));
                assert_eq!(project.world(), format!("{}-plugin", kind.word()));
                for file in ["README.md", ".gitignore", "vendor/wit/v0.1/worlds.wit"] {
                    assert!(dir.join(file).is_file(), "{name} has no {file}");
                }
                assert!(dir.join("tests").is_dir(), "{name} has no tests");
                assert!(dir.join("vendor/sdk").join(language.folder()).is_dir(), "{name} has no SDK");
            }
        }
    }

    #[test]
    fn a_project_in_c_has_the_folders_of_headers_that_its_flags_name() {
        let place = tempfile::tempdir().unwrap();
        for kind in PluginKind::ALL {
            let dir = Draft::new(kind.word(), kind, PluginLanguage::C).unwrap().write(place.path()).unwrap();
            let flags = fs::read_to_string(dir.join("compile_flags.txt")).unwrap();
            let folders: Vec<PathBuf> =
                flags.lines().filter_map(|flag| flag.strip_prefix("-I")).map(|folder| dir.join(folder)).collect();
            let world = format!("{}_plugin.h", kind.word());
            for header in ["longhaul.h", world.as_str()] {
                assert!(folders.iter().any(|folder| folder.join(header).is_file()), "{header} of {}", kind.word());
            }
        }
    }

    #[test]
    fn what_is_there_is_never_written_over() {
        let place = tempfile::tempdir().unwrap();
        let draft = Draft::new("mine", PluginKind::Tool, PluginLanguage::Rust).unwrap();
        fs::write(place.path().join("mine"), "a file").unwrap();
        let error = draft.write(place.path()).unwrap_err().to_string();
        assert!(error.contains("is there already"), "{error}");
        assert_eq!(fs::read_to_string(place.path().join("mine")).unwrap(), "a file");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn an_unknown_kind_or_language_is_said_on_one_line() {
        let kind = "daemon".parse::<PluginKind>().unwrap_err().to_string();
        assert!(kind.ends_with("write one of: agent, planner, tool, evaluator, memory"), "{kind}");
        let language = "co\nbol".parse::<PluginLanguage>().unwrap_err().to_string();
        assert!(language.ends_with("write one of: rust, python, js, c") && !language.contains('\n'), "{language}");
    }
}
