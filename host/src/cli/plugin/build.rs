//! `longhaul plugin build`: from a project to `target/NAME.wasm`, with its manifest beside it.

use crate::cli::{Context, Exit};
use crate::config::Manifest;
use anyhow::Context as _;
use clap::Args;
use longhaul_build::cache::{create_dir, write_whole};
use longhaul_build::{MANIFEST, Project, Workshop, toml_error};
use longhaul_core::Digest;
use std::path::PathBuf;
use std::time::Instant;

#[derive(Args, Debug)]
pub struct BuildArgs {
    /// The folder with plugin.toml.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
}

/// Carries it out.
pub fn run(context: &Context, args: &BuildArgs) -> anyhow::Result<Exit> {
    let start = Instant::now();
    let project = Project::open(&context.project.join(&args.directory))?;
    let manifest = asked(&project)?;
    let bytes = Workshop::embedded(say)?.build(&project)?;
    let path = project.component_path();
    create_dir(path.parent().context("a component is in a folder")?)?;
    write_whole(&path.with_extension("toml"), manifest.as_bytes())?;
    write_whole(&path, &bytes)?;
    let (digest, seconds) = (Digest::of(&bytes), start.elapsed().as_secs_f64());
    if context.json {
        let built = serde_json::json!({
            "name": project.name(), "version": project.version(), "world": project.world(),
            "language": project.language().word(), "path": path, "bytes": bytes.len(), "digest": digest,
            "seconds": seconds,
        });
        outln!("{built}");
    } else {
        let (name, version, world) = (project.name(), project.version(), project.world());
        outln!("{}", path.display());
        outln!("{name} {version}, {world}, {} bytes, {seconds:.1} s\nsha256 {digest}", bytes.len());
    }
    Ok(Exit::Done)
}

/// The manifest's text, once the host has read what the plugin asks for: better now than when it runs.
fn asked(project: &Project) -> anyhow::Result<String> {
    let path = project.dir().join(MANIFEST);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    toml::from_str::<Manifest>(&text).map_err(|error| toml_error(&path, &text, &error))?;
    Ok(text)
}

/// Tells what a build does, apart from its result.
pub fn say(line: &str) {
    eprintln!("{line}");
}
