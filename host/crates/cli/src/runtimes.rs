//! `longhaul runtimes`: builds and installs the interpreters of generated code, which are tool components.
//!
//! Their sources are in this program, and a released program carries them built. An interpreter is built once, and
//! again only when the sources, the contract or the tools change. A plugin with the same name from another source is
//! never overwritten.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::plugin::say;
use clap::Subcommand;
use longhaul_api::wire::plugins::RuntimeView;
use longhaul_build::{PluginBuilder, PluginProject};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_home::{Home, carried_plugins, plugin_directories};
use longhaul_plugins::installed::{InstalledPlugins, PluginSource, PluginVersion};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Names of the interpreters, which are plugins.
const NAMES: [&str; 2] = ["python", "javascript"];

#[derive(Subcommand, Debug)]
pub enum RuntimesCommand {
    /// Build and install the interpreters, if they are not ready.
    Pull {
        /// `python` or `javascript`. Default: both.
        name: Option<String>,
    },
    /// List the interpreters that runs and `exec` use, wherever they are found, and whether they are ready.
    List,
}

/// The state of an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuntimeState {
    Ready,
    /// Built from other sources than those of this program, or changed since.
    Stale,
    Missing,
    /// Not installed, and carried by this program.
    Shipped,
    /// Another plugin has this name.
    Foreign,
    /// Runs use one of another directory of plugins: of `LONGHAUL_PLUGINS`, or beside this program.
    Provided,
}

impl RuntimeState {
    /// The state in a word.
    fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Stale => "stale",
            Self::Missing => "missing",
            Self::Shipped => "shipped",
            Self::Foreign => "foreign",
            Self::Provided => "provided",
        }
    }
}

/// An interpreter: its source and its installation.
struct Runtime {
    project: PluginProject,
    of: Digest,
    installed: InstalledPlugins,
    /// The component that this program carries.
    shipped: Option<PathBuf>,
}

/// Runs the command.
pub fn run(context: &Context, command: RuntimesCommand) -> fault::Result<Exit> {
    let shop = PluginBuilder::embedded(say)?;
    match command {
        RuntimesCommand::Pull { name } => {
            for name in chosen(name)? {
                pull(context, &shop, name)?;
            }
        }
        RuntimesCommand::List => {
            for name in NAMES {
                Runtime::open(&shop, &context.home, name)?.list(context)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn chosen(name: Option<String>) -> fault::Result<Vec<&'static str>> {
    let Some(name) = name else { return Ok(NAMES.to_vec()) };
    match NAMES.into_iter().find(|known| *known == name) {
        Some(known) => Ok(vec![known]),
        None => bail!("there is no interpreter `{name}`; write one of: {}", NAMES.join(", ")),
    }
}

fn pull(context: &Context, shop: &PluginBuilder, name: &str) -> fault::Result<()> {
    let start = Instant::now();
    context.home.make()?;
    let runtime = Runtime::open(shop, &context.home, name)?;
    let change = runtime.installed.change(say)?;
    match runtime.state()? {
        RuntimeState::Ready | RuntimeState::Shipped => return runtime.show_installed(context, None),
        RuntimeState::Foreign => bail!(
            "the plugin `{name}` was not made by this command; to have it made here, remove it, or move `{}` away",
            runtime.path().display()
        ),
        RuntimeState::Stale | RuntimeState::Missing | RuntimeState::Provided => {}
    }
    let bytes = shop.build(&runtime.project)?;
    let version = PluginVersion {
        version: runtime.project.version().to_owned(),
        digest: Digest::of(&bytes),
        bytes: bytes.len() as u64,
        source: PluginSource::Made(runtime.of),
    };
    change.install(name, &bytes, version)?;
    runtime.show_installed(context, Some(start.elapsed().as_secs_f64()))
}

impl Runtime {
    fn open(shop: &PluginBuilder, home: &Home, name: &str) -> fault::Result<Self> {
        let project = PluginProject::open(&shop.top().join("plugins").join(name))?;
        let of = shop.inputs(&project)?.context("an interpreter is not written in Rust")?;
        let shipped = carried_plugins()?.map(|directory| directory.join(format!("{name}.wasm")));
        let shipped = shipped.filter(|path| path.is_file());
        Ok(Self { project, of, installed: InstalledPlugins::of(home), shipped })
    }

    /// The installed file. A run uses it unless a directory that is searched earlier has another.
    fn path(&self) -> PathBuf {
        let installed = self.installed.link(self.project.name());
        match &self.shipped {
            Some(shipped) if installed.symlink_metadata().is_err() => shipped.clone(),
            _ => installed,
        }
    }

    /// The file of another directory of plugins that a run uses. None: it uses the installed one, or there is none.
    fn elsewhere(&self, home: &Home) -> Option<PathBuf> {
        let found = longhaul_plugins::find(self.project.name(), None, home).ok()?;
        let is_installed = found.canonicalize().ok() == self.path().canonicalize().ok();
        (!is_installed).then_some(found)
    }

    /// The state of the installed file.
    fn state(&self) -> fault::Result<RuntimeState> {
        let name = self.project.name();
        if self.installed.foreign(name).is_some() {
            return Ok(RuntimeState::Foreign);
        }
        let Some(current) = self.installed.current(name) else {
            return Ok(if self.shipped.is_some() { RuntimeState::Shipped } else { RuntimeState::Missing });
        };
        let versions = self.installed.versions(name)?;
        Ok(match versions.iter().find(|version| version.digest == current).map(|version| &version.source) {
            Some(PluginSource::Made(of)) if *of == self.of && self.is_whole(current) => RuntimeState::Ready,
            Some(PluginSource::Made(_)) | None => RuntimeState::Stale,
            Some(PluginSource::File(_) | PluginSource::Url(_)) => RuntimeState::Foreign,
        })
    }

    fn is_whole(&self, digest: Digest) -> bool {
        std::fs::read(self.path()).is_ok_and(|bytes| Digest::of(&bytes) == digest)
    }

    /// Prints the interpreter that a run uses.
    fn list(&self, context: &Context) -> fault::Result<()> {
        let (state, path) = match self.elsewhere(&context.home) {
            Some(path) => (RuntimeState::Provided, path),
            None => (self.state()?, self.path()),
        };
        self.show(context, state, &path, None, &self.unused(&context.home, &path))
    }

    /// The components of this name in the other directories of plugins, in the order of the search, which runs do not
    /// use.
    fn unused(&self, home: &Home, used: &Path) -> Vec<PathBuf> {
        let file = format!("{}.wasm", self.project.name());
        let mut known: Vec<_> = used.canonicalize().into_iter().collect();
        let mut unused = Vec::new();
        for path in plugin_directories(home).into_iter().map(|directory| directory.join(&file)) {
            if let Ok(real) = path.canonicalize()
                && real.is_file()
                && !known.contains(&real)
            {
                known.push(real);
                unused.push(path);
            }
        }
        unused
    }

    /// Prints the installed interpreter; `seconds` if it was built now.
    fn show_installed(&self, context: &Context, seconds: Option<f64>) -> fault::Result<()> {
        self.show(context, self.state()?, &self.path(), seconds, &[])
    }

    fn show(
        &self,
        context: &Context,
        state: RuntimeState,
        path: &Path,
        seconds: Option<f64>,
        unused: &[PathBuf],
    ) -> fault::Result<()> {
        let name = self.project.name();
        let bytes = std::fs::metadata(path).map(|found| found.len()).ok();
        if context.json {
            return print_json(&RuntimeView {
                name: name.to_owned(),
                state: state.word().to_owned(),
                path: path.display().to_string(),
                bytes,
                seconds,
                unused: unused.iter().map(|path| path.display().to_string()).collect(),
            });
        }
        let words = match (state, seconds) {
            (RuntimeState::Ready, Some(seconds)) => format!("made in {seconds:.1} s"),
            (RuntimeState::Ready, None) => "ready".to_owned(),
            (RuntimeState::Shipped, _) => "ready, of this program".to_owned(),
            (RuntimeState::Stale, _) => format!("of other sources; run: longhaul runtimes pull {name}"),
            (RuntimeState::Missing, _) => format!("not there; run: longhaul runtimes pull {name}"),
            (RuntimeState::Foreign, _) => "not made by this command".to_owned(),
            (RuntimeState::Provided, _) => "provided by another directory of plugins".to_owned(),
        };
        let size = bytes.map(|bytes| format!(", {} KiB", bytes / 1024)).unwrap_or_default();
        outln!("{name:<12} {words}{size}\n{:<12} {}", "", path.display());
        for path in unused {
            outln!("{:<12} also at {}, which runs do not use", "", path.display());
        }
        Ok(())
    }
}
