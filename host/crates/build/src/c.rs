//! Plugins in C: clang, from the pinned `zig` of PyPI, makes a core module, and that becomes the component.
//!
//! The bindings of a world are generated from the contract, once, into the cache; one of the `paths` of a plugin leads
//! to the SDK. libc has only the functions that need no system: a plugin that prints or asks libc for the time is
//! refused with the names of the SDK's own functions for it.

use crate::cache::{Cache, digest, entries, read, write_whole};
use crate::component::Contract;
use crate::error::BuildError;
use crate::process::capture;
use crate::project::PluginProject;
use crate::pypi;
use crate::recipe::CRecipe as Recipe;
use crate::sources::put;
use longhaul_core::Digest;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wit_bindgen_c::Opts;
use wit_bindgen_core::Files;

type Result<T> = std::result::Result<T, BuildError>;

/// The compiler's version, and with it that of its libc.
const ZIG_VERSION: &str = "0.15.2";

/// The version of `wit-bindgen-c`, which the first line of the bindings names.
const BINDINGS_VERSION: &str = "0.60.0";

/// In the SDK: its header, and the folder of the sources that every plugin links.
const SDK_HEADER: &str = "longhaul.h";
const SDK_SOURCES: &str = "src";

/// A digest that changes when the component would: sources, contract, compiler and generator.
pub(crate) fn inputs(contract: &Contract, project: &PluginProject, recipe: &Recipe) -> Result<Digest> {
    let parts = [
        ZIG_VERSION.to_owned(),
        BINDINGS_VERSION.to_owned(),
        contract.digest().to_string(),
        project.world().to_owned(),
        format!("{:?}", recipe.sources),
        project.sources_digest()?.to_string(),
        project.imports_digest(&recipe.paths)?.to_string(),
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
    let sources = sources(project, recipe)?;
    let folders = project.folders(&recipe.paths)?;
    let sdk = sdk(project, &folders)?;
    let bindings = bindings(cache, contract, project)?;
    let zig = zig(cache)?;
    cache.say(&format!("building `{}` with zig cc {ZIG_VERSION}", project.name()));
    let core = output.with_extension("core");
    let mut clang = Command::new(zig);
    clang
        .current_dir(project.dir())
        // Its first run builds libc, which takes half a minute and serves all projects.
        .env("ZIG_GLOBAL_CACHE_DIR", cache.path("zig"))
        .env("ZIG_LOCAL_CACHE_DIR", cache.path("zig"))
        .args(["cc", "-target", "wasm32-wasi", "-mexec-model=reactor", "-std=c11", "-Os", "-Wall", "-Wextra"])
        // The compiler's stack guard would read the system's randomness at the start of each instance. The compiler's
        // own stack is 16 MiB, and every instance would start with it.
        .args(["-fno-stack-protector", "-Wl,--strip-debug", "-Wl,-z,stack-size=1048576", "-I"])
        .arg(&bindings);
    for folder in &folders {
        clang.arg("-I").arg(folder);
    }
    clang.args(&sources).args(linked(&sdk.join(SDK_SOURCES))?).args(linked(&bindings)?).arg("-o").arg(&core);
    let made = capture(&format!("build the C plugin `{}`", project.name()), &mut clang).and_then(|_| read(&core));
    // After a failure of the compiler the file does not exist, and the error is reported already.
    let _ = fs::remove_file(&core);
    let component = contract.encode(project.name(), project.world(), &made?).map_err(without_system)?;
    write_whole(output, &component)
}

/// The compiler.
pub(crate) fn zig(cache: &Cache) -> Result<PathBuf> {
    Ok(pypi::package(cache, "ziglang", ZIG_VERSION)?.join("ziglang/zig"))
}

/// Names the SDK's function for a libc function that needs a system.
fn without_system(error: BuildError) -> BuildError {
    match error {
        BuildError::Component(text) if text.contains("wasi_snapshot_preview1") => BuildError::component(format!(
            "{text}; printf, fopen, time and the like of libc need a system: use the log, the clock and the files \
             that the SDK has for the world"
        )),
        other => other,
    }
}

fn sources(project: &PluginProject, recipe: &Recipe) -> Result<Vec<PathBuf>> {
    let source = |path: &PathBuf| {
        let file = project.dir().join(path);
        if file.is_file() {
            return Ok(file);
        }
        Err(BuildError::project(format!(
            "plugin `{}` has no `{}`; write it, or mend `sources` under [build] in its plugin.toml",
            project.name(),
            path.display()
        )))
    };
    recipe.sources.iter().map(source).collect()
}

/// The folder of the SDK: the first one with its header.
fn sdk<'a>(project: &PluginProject, folders: &'a [PathBuf]) -> Result<&'a Path> {
    let found = folders.iter().find(|folder| folder.join(SDK_HEADER).is_file());
    found.map(PathBuf::as_path).ok_or_else(|| {
        BuildError::project(format!(
            "plugin `{}` finds no `{SDK_HEADER}`; name the folder of the SDK in `paths` under [build] in its plugin.toml",
            project.name()
        ))
    })
}

/// The folder with the bindings of the project's world.
fn bindings(cache: &Cache, contract: &Contract, project: &PluginProject) -> Result<PathBuf> {
    let name = format!("c-bindings-{BINDINGS_VERSION}-{}-{}", project.world(), contract.digest().short());
    cache.folder(&name, |folder| {
        let files = generate(contract, project.name(), project.world())?;
        files.iter().try_for_each(|(name, bytes)| put(&folder.join(name), bytes))
    })
}

/// The bindings of a world: a header, a source, and an object that carries the types of the component.
fn generate(contract: &Contract, plugin: &str, world: &str) -> Result<Files> {
    let id = contract.world(plugin, world)?;
    // The generator numbers the types of the world anew.
    let mut resolve = contract.resolve().clone();
    let mut files = Files::default();
    Opts::default().build().generate(&mut resolve, id, &mut files).map_err(|error| {
        BuildError::component(format!(
            "no bindings for C come of world `{world}`, which plugin `{plugin}` is built for: {error:#}"
        ))
    })?;
    Ok(files)
}

/// Writes the header of a world's bindings to `folder`, for editors.
pub(crate) fn write_header(contract: &Contract, plugin: &str, world: &str, folder: &Path) -> Result<()> {
    let files = generate(contract, plugin, world)?;
    let is_header = |(name, _): &(&str, &[u8])| name.ends_with(".h");
    files.iter().filter(is_header).try_for_each(|(name, bytes)| put(&folder.join(name), bytes))
}

/// The files of a folder to compile and link: sources, and the bindings' object with the types.
fn linked(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_linked = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "c" || extension == "o");
    Ok(entries(folder)?.into_iter().filter(is_linked).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draft::PluginKind;

    fn contract() -> Contract {
        Contract::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")).unwrap()
    }

    #[test]
    fn every_world_has_bindings_of_the_version_that_is_part_of_the_digest() {
        let contract = contract();
        let first = format!("// Generated by `wit-bindgen` {BINDINGS_VERSION}. DO NOT EDIT!\n");
        for kind in PluginKind::ALL.map(PluginKind::word) {
            let files = generate(&contract, "a", &format!("{kind}-plugin")).unwrap();
            let names: Vec<&str> = files.iter().map(|(name, _)| name).collect();
            assert_eq!(names, [".c", ".h", "_component_type.o"].map(|end| format!("{kind}_plugin{end}")));
            let texts: Vec<&[u8]> = files.iter().map(|(_, bytes)| bytes).collect();
            assert!(texts[..2].iter().all(|text| text.starts_with(first.as_bytes())), "{kind}");
            assert!(texts[2].starts_with(b"\0asm"), "{kind}");
        }
    }

    #[test]
    fn a_world_that_the_contract_does_not_have_is_refused_by_name() {
        let error = generate(&contract(), "a", "poet-plugin").map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with("plugin `a` asks for the world `poet-plugin`, which is not in wit/v0.1"), "{error}");
    }
}
