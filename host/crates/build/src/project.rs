//! A plugin's project: the folder with `plugin.toml`, and its settings for the build.
//!
//! The fields for the build are read strictly. The host reads the requested grants, and decides on them; here they only
//! pass through, in the component itself.

use crate::cache::{digest, digest_tree};
use crate::error::{AtPath, BuildError};
use crate::language::PluginLanguage;
use crate::names;
use crate::recipe::Recipe;
use longhaul_core::Digest;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};

/// The manifest's name.
pub const MANIFEST: &str = "plugin.toml";

/// Folders at the top of a project or an SDK that are not sources: a change there causes no build.
const NOT_IMPORTED: [&str; 3] = ["examples", "test", "tests"];

/// A project with all settings for its build.
#[derive(Clone, Debug)]
pub struct PluginProject {
    dir: PathBuf,
    name: String,
    version: String,
    world: String,
    manifest: String,
    pub(crate) recipe: Recipe,
}

#[derive(Deserialize)]
struct Manifest {
    name: String,
    version: String,
    world: String,
    build: Option<toml::Table>,
}

impl PluginProject {
    /// Reads the manifest in `dir`.
    ///
    /// # Errors
    /// When there is none, or it does not define the build.
    pub fn open(dir: &Path) -> Result<Self, BuildError> {
        let path = dir.join(MANIFEST);
        if !path.is_file() {
            return Err(BuildError::project(format!(
                "there is no `{}`; name the folder of a plugin, or make one with `longhaul plugin new`",
                path.display()
            )));
        }
        let text = fs::read_to_string(&path).at("read", &path)?;
        let manifest: Manifest = toml::from_str(&text).map_err(|error| toml_error(&path, &text, &error))?;
        let wrong = |why: String| BuildError::project(format!("`{}`: {why}", path.display()));
        names::check_form(&manifest.name).map_err(|error| wrong(error.to_string()))?;
        // Programs start in other folders, so a relative path must become absolute.
        let dir = fs::canonicalize(dir).at("find", dir)?;
        let recipe = recipe(&dir, &manifest).map_err(wrong)?;
        let Manifest { name, version, world, .. } = manifest;
        Ok(Self { dir, name, version, world, manifest: text, recipe })
    }

    /// The folder, as an absolute path.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The plugin's name, in plain form.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plugin's own version.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The world of the contract that it is built for, such as `tool-plugin`.
    #[must_use]
    pub fn world(&self) -> &str {
        &self.world
    }

    /// The text of its manifest.
    #[must_use]
    pub fn manifest(&self) -> &str {
        &self.manifest
    }

    /// The language of the project.
    #[must_use]
    pub fn language(&self) -> PluginLanguage {
        match self.recipe {
            Recipe::Rust => PluginLanguage::Rust,
            Recipe::Python(_) => PluginLanguage::Python,
            Recipe::Javascript(_) => PluginLanguage::Javascript,
            Recipe::C(_) => PluginLanguage::C,
        }
    }

    /// The path of the component: `target/NAME.wasm`, the same for every language.
    #[must_use]
    pub fn component_path(&self) -> PathBuf {
        self.dir.join("target").join(format!("{}.wasm", self.name))
    }

    /// A digest of every file that a build reads: its sources, and the folders that it imports from.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn digest(&self) -> Result<Digest, BuildError> {
        let paths: &[PathBuf] = match &self.recipe {
            Recipe::Rust => &[],
            Recipe::Python(recipe) => recipe.paths(),
            Recipe::Javascript(recipe) => recipe.paths(),
            Recipe::C(recipe) => recipe.paths(),
        };
        let parts = [self.sources_digest()?, self.imports_digest(paths)?];
        Ok(digest(parts.iter().map(|part| part.as_bytes().as_slice())))
    }

    /// A digest of every file of the project except for its tests.
    pub(crate) fn sources_digest(&self) -> Result<Digest, BuildError> {
        digest_tree(&self.dir, &NOT_IMPORTED)
    }

    /// A digest of the files of those folders.
    pub(crate) fn imports_digest(&self, paths: &[PathBuf]) -> Result<Digest, BuildError> {
        let digests: Result<Vec<Digest>, BuildError> =
            self.folders(paths)?.iter().map(|folder| digest_tree(folder, &NOT_IMPORTED)).collect();
        Ok(digest(digests?.iter().map(|digest| digest.as_bytes().as_slice())))
    }

    /// The folders that `paths` under `[build]` names.
    pub(crate) fn folders(&self, paths: &[PathBuf]) -> Result<Vec<PathBuf>, BuildError> {
        let folder = |path: &PathBuf| {
            let folder = self.dir.join(path);
            if folder.is_dir() {
                return Ok(folder);
            }
            Err(BuildError::project(format!(
                "plugin `{}` imports from `{}`, which is no folder; mend `paths` under [build] in its {MANIFEST}",
                self.name,
                folder.display()
            )))
        };
        paths.iter().map(folder).collect()
    }
}

fn recipe(dir: &Path, manifest: &Manifest) -> Result<Recipe, String> {
    let mut build = manifest.build.clone().unwrap_or_default();
    let mut word = |key: &str| match build.remove(key) {
        None => Ok(None),
        Some(toml::Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("[build] {key} is `{other}`, and should be a text")),
    };
    let (language, world) = (word("language")?, word("world")?);
    if let Some(world) = world.filter(|world| *world != manifest.world) {
        return Err(format!("[build] world is `{world}` and world is `{}`; make them the same", manifest.world));
    }
    let language = match language {
        Some(word) => word.parse().map_err(|error: BuildError| format!("[build] language: {error}"))?,
        None if dir.join("Cargo.toml").is_file() => PluginLanguage::Rust,
        None => return Err("it does not say its language; add: [build] language = \"python\"".to_owned()),
    };
    match language {
        PluginLanguage::Rust => rust_recipe(dir, build),
        PluginLanguage::Python => read(build).map(Recipe::Python),
        PluginLanguage::Javascript => read(build).map(Recipe::Javascript),
        PluginLanguage::C => read(build).map(Recipe::C),
    }
}

fn rust_recipe(dir: &Path, build: toml::Table) -> Result<Recipe, String> {
    if let Some(key) = build.keys().next() {
        return Err(format!("[build] {key} means nothing for Rust; what cargo should know is in Cargo.toml"));
    }
    if !dir.join("Cargo.toml").is_file() {
        return Err("[build] language is `rust`, and there is no Cargo.toml beside it".to_owned());
    }
    Ok(Recipe::Rust)
}

fn read<T: serde::de::DeserializeOwned>(build: toml::Table) -> Result<T, String> {
    // The rest of such an error is the text around its place, which a table does not have.
    build.try_into().map_err(|error: toml::de::Error| format!("[build]: {}", error.message()))
}

/// The error of a TOML file, on one line with its place.
#[must_use]
pub fn toml_error(path: &Path, text: &str, error: &toml::de::Error) -> BuildError {
    let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let place = line.map(|line| format!(", line {line}")).unwrap_or_default();
    let message = error.message().replace('\n', ", ");
    BuildError::project(format!("`{}`{place}: {message}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "name = \"a\"\nversion = \"0.1.0\"\nworld = \"tool-plugin\"\n";

    fn open(manifest: &str, files: &[&str]) -> Result<PluginProject, String> {
        let place = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(place.path().join(file), "").unwrap();
        }
        fs::write(place.path().join(MANIFEST), manifest).unwrap();
        PluginProject::open(place.path()).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(manifest: &str, expected: &str) {
        let error = open(manifest, &[]).expect_err(manifest);
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains('\n'), "one line: {error}");
    }

    #[test]
    fn a_manifest_that_says_too_little_or_nonsense_is_refused_on_one_line() {
        check("name = ", "plugin.toml`, line 1: ");
        check("name = \"a\"\nversion = 1\n", "line 2: invalid type: integer `1`, expected a string");
        check("name = \"a\"", "missing field `version`");
        check(&TOP.replace("\"a\"", "\"../a\""), "is no name of a plugin");
        check(TOP, "it does not say its language");
        check(&format!("{TOP}[build]\nlanguage = \"cobol\""), "there is no language `cobol` here");
        check(&format!("{TOP}[build]\nlanguage = 1"), "language is `1`, and should be a text");
        check(&format!("{TOP}[build]\nlanguage = \"rust\""), "there is no Cargo.toml beside it");
        check(&format!("{TOP}[build]\nlanguage = \"python\""), "[build]: missing field `module`");
        check(&format!("{TOP}[build]\nlanguage = \"python\"\nmodul = \"app\""), "unknown field `modul`");
        check(&format!("{TOP}[build]\nworld = \"agent-plugin\""), "make them the same");
    }

    #[test]
    fn a_change_of_a_source_is_seen_and_one_of_what_was_built_is_not() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(place.path().join(name), text).unwrap();
        let build = "[build]\nlanguage = \"python\"\nmodule = \"app\"\npaths = [\"site\"]";
        write(MANIFEST, &format!("{TOP}{build}"));
        write("app.py", "1");
        fs::create_dir(place.path().join("site")).unwrap();
        let now = || PluginProject::open(place.path()).unwrap().digest().unwrap();
        let first = now();
        fs::create_dir(place.path().join("target")).unwrap();
        write("target/a.wasm", "x");
        assert_eq!(now(), first);
        write("app.py", "2");
        let second = now();
        assert_ne!(second, first);
        write("site/more.py", "3");
        assert_ne!(now(), second);
    }

    #[test]
    fn a_crate_beside_the_manifest_makes_it_rust() {
        let project = open(TOP, &["Cargo.toml"]).unwrap();
        assert_eq!((project.language(), project.world()), (PluginLanguage::Rust, "tool-plugin"));
        assert!(project.component_path().ends_with("target/a.wasm"));
    }

    #[test]
    fn a_folder_without_a_manifest_says_how_to_make_one() {
        let place = tempfile::tempdir().unwrap();
        let error = PluginProject::open(place.path()).expect_err("there is nothing").to_string();
        assert!(error.ends_with("or make one with `longhaul plugin new`"), "{error}");
    }
}
