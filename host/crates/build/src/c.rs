//! Plugins in C: clang, as the pinned `zig` of PyPI brings it, makes a core module, and that becomes the
//! component.
//!
//! The bindings of each world are generated once and kept in the SDK, in `bindings/WORLD`; one of the `paths`
//! of a plugin leads to the SDK. Of libc there is what needs no system: a plugin that prints or asks libc for the
//! time is refused with the names of the SDK's own functions for it.

use crate::cache::{Cache, digest, entries, read, write_whole};
use crate::component::Contract;
use crate::error::BuildError;
use crate::process::capture;
use crate::project::Project;
use crate::pypi;
use crate::recipe::CRecipe as Recipe;
use longhaul_core::Digest;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, BuildError>;

/// The compiler's version, and with it that of its libc.
const ZIG_VERSION: &str = "0.15.2";

/// In the SDK: the folder of what every plugin links, and that with bindings for each world.
const SDK_SOURCES: &str = "src";
const BINDINGS: &str = "bindings";

/// Changes when the component would: sources, contract and compiler.
pub(crate) fn inputs(contract: &Contract, project: &Project, recipe: &Recipe) -> Result<Digest> {
    let parts = [
        ZIG_VERSION.to_owned(),
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
    project: &Project,
    recipe: &Recipe,
    output: &Path,
) -> Result<()> {
    let sources = sources(project, recipe)?;
    let folders = project.folders(&recipe.paths)?;
    let sdk = sdk(project, &folders)?;
    let bindings = sdk.join(BINDINGS).join(project.world());
    let zig = pypi::package(cache, "ziglang", ZIG_VERSION)?.join("ziglang/zig");
    cache.say(&format!("building `{}` with zig cc {ZIG_VERSION}", project.name()));
    let core = output.with_extension("core");
    let mut clang = Command::new(zig);
    clang
        .current_dir(project.dir())
        // Its first run builds libc, which takes half a minute and serves all projects.
        .env("ZIG_GLOBAL_CACHE_DIR", cache.path("zig"))
        .env("ZIG_LOCAL_CACHE_DIR", cache.path("zig"))
        .args(["cc", "-target", "wasm32-wasi", "-mexec-model=reactor", "-std=c11", "-Os", "-Wall", "-Wextra"])
        // The guard of the stack would be drawn from the system's randomness, at the start of each instance.
        // The compiler's own stack is 16 MiB, which every instance would start with.
        .args(["-fno-stack-protector", "-Wl,--strip-debug", "-Wl,-z,stack-size=1048576", "-I"])
        .arg(&bindings);
    for folder in &folders {
        clang.arg("-I").arg(folder);
    }
    clang.args(&sources).args(linked(&sdk.join(SDK_SOURCES))?).args(linked(&bindings)?).arg("-o").arg(&core);
    let made = capture(&format!("build the C plugin `{}`", project.name()), &mut clang).and_then(|_| read(&core));
    // Where the compiler failed it is not there, and what is wrong is said already.
    let _ = fs::remove_file(&core);
    let component = contract.encode(project.name(), project.world(), &made?).map_err(without_system)?;
    write_whole(output, &component)
}

/// Says what to call instead, where libc wants a system.
fn without_system(error: BuildError) -> BuildError {
    match error {
        BuildError::Component(text) if text.contains("wasi_snapshot_preview1") => BuildError::component(format!(
            "{text}; printf, fopen, time and the like of libc need a system: use the log, the clock and the files \
             that the SDK has for the world"
        )),
        other => other,
    }
}

fn sources(project: &Project, recipe: &Recipe) -> Result<Vec<PathBuf>> {
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

/// The folder of the SDK: the first one with bindings of the project's world.
fn sdk<'a>(project: &Project, folders: &'a [PathBuf]) -> Result<&'a Path> {
    let bindings = Path::new(BINDINGS).join(project.world());
    let found = folders.iter().find(|folder| folder.join(&bindings).is_dir());
    found.map(PathBuf::as_path).ok_or_else(|| {
        BuildError::project(format!(
            "plugin `{}` finds no `{}`; name the folder of the SDK in `paths` under [build] in its plugin.toml",
            project.name(),
            bindings.display()
        ))
    })
}

/// What of a folder is compiled and linked: source, and of the bindings the object that says the types.
fn linked(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_linked = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "c" || extension == "o");
    Ok(entries(folder)?.into_iter().filter(is_linked).collect())
}
