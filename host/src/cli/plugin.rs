//! `longhaul plugin`: make and build plugins; which are found, what a file is, and what it does when it
//! is called.

mod build;
mod check;
mod new;
mod run;
mod test;

pub use build::say;
pub(super) use run::kit;

use super::{Context, Exit};
use crate::config::Manifest;
use crate::plugins;
use clap::Subcommand;
use longhaul_core::LimitHit;
use longhaul_engine::{CompileLimits, Inspection, LoadError, inspect};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a project that builds at once: plugin.toml, source, tests, and the SDK in `vendor`.
    New(new::NewArgs),
    /// Build a project into `target/NAME.wasm`; what its language needs is fetched into the cache.
    Build(build::BuildArgs),
    /// List the plugins that a run of this project would find.
    List,
    /// Show what a component is, without running it.
    Inspect {
        /// A `.wasm` file, or the name of a plugin.
        file: String,
    },
    /// Say whether a component is a plugin of its world, without running it; exit code 1 when it is not.
    Check {
        /// A `.wasm` file, or the name of a plugin.
        file: String,
    },
    /// Call one export under limits; shows result, fuel, memory, calls of the host and log.
    Run(run::RunArgs),
    /// Run the scenarios of a project's `tests` folder.
    Test(test::TestArgs),
}

/// Carries it out.
pub async fn run(context: &Context, command: Command) -> anyhow::Result<Exit> {
    match command {
        Command::New(args) => new::run(context, &args),
        Command::Build(args) => build::run(context, &args),
        Command::List => list(context),
        Command::Inspect { file } => {
            let path = file_of(context, &file)?;
            show(context, &look(&path)?, &Manifest::beside(&path)?)
        }
        Command::Check { file } => check::run(context, &file),
        Command::Run(args) => run::run(context, args).await,
        Command::Test(args) => test::run(context, args).await,
    }
}

/// A file, or the file of a plugin of that name.
pub(super) fn file_of(context: &Context, file: &str) -> anyhow::Result<PathBuf> {
    if Path::new(file).is_file() {
        return Ok(PathBuf::from(file));
    }
    plugins::find(file, Some(&context.project), &context.home)
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    for directory in plugins::directories(Some(&context.project), &context.home) {
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "wasm")
                && let Some(name) = path.file_stem().map(|stem| stem.to_string_lossy().into_owned())
            {
                found.entry(name).or_insert(path);
            }
        }
    }
    for (name, path) in found {
        let described = Manifest::beside(&path).map(|manifest| manifest.description).unwrap_or_default();
        if context.json {
            outln!("{}", serde_json::json!({ "name": name, "path": path, "description": described }));
        } else {
            outln!("{name:<20} {described}\n{:<20} {}", "", path.display());
        }
    }
    Ok(Exit::Done)
}

fn look(path: &Path) -> anyhow::Result<Inspection> {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let limits = CompileLimits::default();
    Ok(inspect(&name, &read_bounded(&name, path, &limits)?, &limits)?)
}

/// The bytes of a component, if they are no more than may be compiled.
pub(super) fn read_bounded(name: &str, path: &Path, limits: &CompileLimits) -> Result<Vec<u8>, LoadError> {
    let unreadable = |source| LoadError::Unreadable { name: name.to_owned(), path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > limits.bytes_max {
        let hit = LimitHit::new("bytes_max", size, limits.bytes_max);
        return Err(LoadError::Limit { name: name.to_owned(), hit });
    }
    std::fs::read(path).map_err(unreadable)
}

fn show(context: &Context, inspection: &Inspection, manifest: &Manifest) -> anyhow::Result<Exit> {
    if context.json {
        outln!(
            "{}",
            serde_json::json!({ "component": inspection, "asks": manifest.asks, "description": manifest.description })
        );
        return Ok(Exit::Done);
    }
    outln!(
        "{} for contract {}, {} bytes, {} functions",
        inspection.role.name(),
        inspection.contract,
        inspection.bytes,
        inspection.functions
    );
    outln!("sha256 {}", inspection.digest);
    outln!("imports {}", inspection.imports.join(", "));
    outln!("asks for {}", serde_json::to_string(&manifest.asks)?);
    Ok(Exit::Done)
}
