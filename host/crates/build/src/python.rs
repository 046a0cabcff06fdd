//! Plugins in Python, made into components by the pinned `componentize-py`.
//!
//! They are built against the host's deterministic WASI, never with `--stub-wasi`: a stubbed guest dies at its first
//! print. A build takes ten seconds and is not reproducible byte for byte. The tool links its output of a dozen
//! libraries, which [`merge`] makes one module of: a call of a fresh instance starts in half the time.

use crate::cache::{Cache, digest};
use crate::component::Contract;
use crate::error::{AtPath as _, BuildError};
use crate::merge;
use crate::process::capture;
use crate::project::PluginProject;
use crate::pypi;
use crate::recipe::PythonRecipe as Recipe;
use longhaul_core::Digest;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, BuildError>;

/// The version whose output was tested with the host's WASI.
const TOOL_VERSION: &str = "0.25.1";

/// The further processing of its output. A new text rebuilds every component.
const LAYOUT: &str = "one module";

/// The script that the package would install, minus its first line, which names an interpreter.
const TOOL_SCRIPT: &str = "import sys; sys.argv[0] = 'componentize-py'; \
                           from componentize_py import script; sys.exit(script())";

/// A digest that changes when the component would: sources, contract and tool.
pub(crate) fn inputs(contract: &Contract, project: &PluginProject, recipe: &Recipe) -> Result<Digest> {
    let parts = [
        TOOL_VERSION.to_owned(),
        LAYOUT.to_owned(),
        contract.digest().to_string(),
        project.world().to_owned(),
        recipe.module.clone(),
        project.sources_digest()?.to_string(),
        project.imports_digest(&recipe.paths)?.to_string(),
        recipe.packages.join(" "),
    ];
    Ok(digest(parts.iter().map(String::as_bytes)))
}

/// Writes the component to `output`.
pub(crate) fn make(
    cache: &Cache,
    contract: &Contract,
    project: &PluginProject,
    recipe: &Recipe,
    output: &Path,
) -> Result<()> {
    check_module(project, &recipe.module)?;
    let folders = project.folders(&recipe.paths)?;
    let packages = packages(cache, project, recipe)?;
    let tool = pypi::package(cache, "componentize-py", TOOL_VERSION)?;
    cache.say(&format!("building `{}` with componentize-py {TOOL_VERSION} (about 10 s)", project.name()));
    let mut python = pypi::python();
    python
        .env("PYTHONPATH", &tool)
        .args(["-c", TOOL_SCRIPT, "--wit-path"])
        .arg(contract.dir())
        .args(["--world", project.world(), "componentize", "--python-path"])
        .arg(project.dir());
    for folder in folders.iter().chain(&packages) {
        python.arg("--python-path").arg(folder);
    }
    python.arg(&recipe.module).arg("--output").arg(output);
    let built = capture(&format!("build the Python plugin `{}`", project.name()), &mut python);
    built.map_err(|error| with_advice(error, project.name(), &tool))?;
    let linked = std::fs::read(output).at("read", output)?;
    let merged = merge::into_one_module(project.name(), &linked)?;
    std::fs::write(output, merged).at("write", output)
}

/// Python's words for a library that it may not map, as on a file system that is mounted noexec.
const NOT_MAPPED: &str = "failed to map segment from shared object";

/// The folders of the packages that the project names.
fn packages(cache: &Cache, project: &PluginProject, recipe: &Recipe) -> Result<Vec<PathBuf>> {
    let package = |text: &String| match text.split_once("==") {
        Some((name, version)) if is_plain(name) && is_plain(version) => pypi::package(cache, name, version),
        _ => Err(BuildError::project(format!(
            "plugin `{}` names the package `{text}`; write NAME==VERSION in `packages` under [build] in its plugin.toml",
            project.name()
        ))),
    };
    recipe.packages.iter().map(package).collect()
}

/// True when a name or a version can be neither an option of pip nor a path.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

/// Adds the remedy for a module that an import did not find, and for a tool in a cache that no code runs in.
fn with_advice(error: BuildError, plugin: &str, tool: &Path) -> BuildError {
    let BuildError::ToolFailed { doing, program, status, mut said } = error else { return error };
    if said.contains(NOT_MAPPED) {
        return BuildError::NoExec { doing, directory: tool.to_owned(), why: NOT_MAPPED.to_owned() };
    }
    if let Some(module) = missing_module(&said) {
        said.push_str(&format!(
            "\n`{module}` is not there when `{plugin}` is built; put the folder that holds it into `paths` under [build] \
             in its plugin.toml. Packages in pure Python: packages = [\"NAME==VERSION\"] there. Compiled packages, threads, \
             processes and sockets are not there in WebAssembly"
        ));
    }
    BuildError::ToolFailed { doing, program, status, said }
}

/// The module that Python did not find: the last one that its output names.
fn missing_module(said: &str) -> Option<&str> {
    let (_, behind) = said.rsplit_once("ModuleNotFoundError: No module named '")?;
    behind.split('\'').next().filter(|name| !name.is_empty())
}

/// Refuses a missing module, since the tool would only say that its own start failed.
fn check_module(project: &PluginProject, module: &str) -> Result<()> {
    let path = project.dir().join(module.replace('.', "/"));
    if path.with_extension("py").is_file() || path.join("__init__.py").is_file() {
        return Ok(());
    }
    Err(BuildError::project(format!(
        "plugin `{}` has no module `{module}`; write {module}.py, or mend `module` under [build] in its plugin.toml",
        project.name()
    )))
}

#[cfg(test)]
mod tests {
    use super::{is_plain, missing_module, with_advice};
    use crate::error::BuildError;
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::Path;
    use std::process::ExitStatus;

    #[test]
    fn a_cache_that_no_library_is_loaded_from_is_named_in_one_line() {
        let said = ":\nTraceback\nImportError: /c/_a.so: failed to map segment from shared object\n".to_owned();
        let (doing, program) = ("build".to_owned(), "python3".to_owned());
        let error = BuildError::ToolFailed { doing, program, status: ExitStatus::from_raw(256), said };
        let told = with_advice(error, "a", Path::new("/c/componentize-py")).to_string();
        assert!(told.contains("no program can be started in `/c/componentize-py`"), "{told}");
        assert!(told.ends_with("LONGHAUL_CACHE or XDG_CACHE_HOME") && !told.contains('\n'), "{told}");
    }

    #[test]
    fn the_module_that_an_import_did_not_find_is_named() {
        let said = ":\nTraceback\n  File \"app.py\", line 1\nModuleNotFoundError: No module named 'yaml.nodes'; 'yaml' is \
                    not a package\n";
        assert_eq!(missing_module(said), Some("yaml.nodes"));
        assert_eq!(missing_module("SyntaxError: No module named 'x'"), None);
    }

    #[test]
    fn a_package_is_a_name_and_a_version_and_no_option() {
        for (text, expected) in [("tzdata", true), ("ruamel.yaml", true), ("2026.6", true), ("", false), ("-r", false)]
        {
            assert_eq!(is_plain(text), expected, "{text}");
        }
        assert!(!is_plain("../a") && !is_plain("a b") && !is_plain("a@b"));
    }
}
