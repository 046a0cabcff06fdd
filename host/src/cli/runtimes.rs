//! `longhaul runtimes`: the interpreters for generated code, as tool components in the data directory.
//!
//! Their sources are in this program; they are built once and again only when the sources, the contract or
//! the tools change. A component of that name that was not made here is never written over.

use super::plugin::say;
use super::{Context, Exit};
use crate::home::Home;
use anyhow::{Context as _, bail};
use clap::Subcommand;
use longhaul_build::cache::{create_dir, lock, write_whole};
use longhaul_build::{BuildError, MANIFEST, Project, Workshop};
use longhaul_core::Digest;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Instant;

/// The interpreters, by the names of their plugins.
const NAMES: [&str; 2] = ["python", "javascript"];

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make the interpreters ready: builds them into the data directory, once.
    Pull {
        /// `python` or `javascript`. Default: both.
        name: Option<String>,
    },
    /// List the interpreters and whether they are ready.
    List,
}

/// What is kept beside a component that was made here.
#[derive(Serialize, Deserialize, PartialEq)]
struct Made {
    /// Of sources, contract and tools.
    of: Digest,
    /// Of the component.
    component: Digest,
}

/// How an interpreter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Ready,
    /// Made of other sources than this program has, or changed since.
    Stale,
    Missing,
    /// Somebody else put a plugin of this name there.
    Foreign,
}

/// One interpreter: where it comes from and where it goes.
struct Runtime {
    project: Project,
    of: Digest,
    component: PathBuf,
}

/// Carries it out.
pub fn run(context: &Context, command: Command) -> anyhow::Result<Exit> {
    let shop = Workshop::embedded(say)?;
    match command {
        Command::Pull { name } => {
            for name in chosen(name)? {
                pull(context, &shop, name)?;
            }
        }
        Command::List => {
            for name in NAMES {
                show(context, name, &Runtime::open(&shop, &context.home, name)?, None)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn chosen(name: Option<String>) -> anyhow::Result<Vec<&'static str>> {
    let Some(name) = name else { return Ok(NAMES.to_vec()) };
    match NAMES.into_iter().find(|known| *known == name) {
        Some(known) => Ok(vec![known]),
        None => bail!("there is no interpreter `{name}`; write one of: {}", NAMES.join(", ")),
    }
}

fn pull(context: &Context, shop: &Workshop, name: &str) -> anyhow::Result<()> {
    let start = Instant::now();
    context.home.make()?;
    let runtime = Runtime::open(shop, &context.home, name)?;
    let _lock = lock(&context.home.plugins().join(".runtimes.lock"), say)?;
    match runtime.state() {
        State::Ready => return show(context, name, &runtime, None),
        State::Foreign => {
            bail!("`{}` was not made by this command; to have it made here, move it away", runtime.component.display())
        }
        State::Stale | State::Missing => {}
    }
    runtime.install(&shop.build(&runtime.project)?)?;
    show(context, name, &runtime, Some(start.elapsed().as_secs_f64()))
}

impl Runtime {
    fn open(shop: &Workshop, home: &Home, name: &str) -> anyhow::Result<Self> {
        let project = Project::open(&shop.top().join("plugins").join(name))?;
        let of = shop.inputs(&project)?.context("an interpreter is not written in Rust")?;
        Ok(Self { project, of, component: home.plugins().join(format!("{name}.wasm")) })
    }

    fn made_path(&self) -> PathBuf {
        self.component.with_extension("made.json")
    }

    fn state(&self) -> State {
        let Ok(bytes) = std::fs::read(&self.component) else { return State::Missing };
        let made = std::fs::read(self.made_path()).ok().and_then(|text| serde_json::from_slice::<Made>(&text).ok());
        match made {
            None => State::Foreign,
            Some(made) if made == (Made { of: self.of, component: Digest::of(&bytes) }) => State::Ready,
            Some(_) => State::Stale,
        }
    }

    /// The note goes first: a component without one would count as somebody else's.
    fn install(&self, bytes: &[u8]) -> Result<(), anyhow::Error> {
        if let Some(folder) = self.component.parent() {
            create_dir(folder)?;
        }
        let made = Made { of: self.of, component: Digest::of(bytes) };
        let manifest = self.project.dir().join(MANIFEST);
        let manifest = std::fs::read(&manifest).with_context(|| format!("cannot read `{}`", manifest.display()))?;
        let write = || -> Result<(), BuildError> {
            write_whole(&self.made_path(), serde_json::to_string(&made).unwrap_or_default().as_bytes())?;
            write_whole(&self.component.with_extension("toml"), &manifest)?;
            write_whole(&self.component, bytes)
        };
        Ok(write()?)
    }
}

/// One line for an interpreter; `seconds` when it was made now.
fn show(context: &Context, name: &str, runtime: &Runtime, seconds: Option<f64>) -> anyhow::Result<()> {
    let state = runtime.state();
    let bytes = std::fs::metadata(&runtime.component).map(|found| found.len()).ok();
    if context.json {
        let shown = serde_json::json!({
            "name": name, "state": state, "path": runtime.component, "bytes": bytes, "seconds": seconds,
        });
        outln!("{shown}");
        return Ok(());
    }
    let words = match (state, seconds) {
        (State::Ready, Some(seconds)) => format!("made in {seconds:.1} s"),
        (State::Ready, None) => "ready".to_owned(),
        (State::Stale, _) => format!("of other sources; run: longhaul runtimes pull {name}"),
        (State::Missing, _) => format!("not there; run: longhaul runtimes pull {name}"),
        (State::Foreign, _) => "not made by this command".to_owned(),
    };
    let size = bytes.map(|bytes| format!(", {} KiB", bytes / 1024)).unwrap_or_default();
    outln!("{name:<12} {words}{size}\n{:<12} {}", "", runtime.component.display());
    Ok(())
}
