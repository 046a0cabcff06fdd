//! `longhaul plugin build`: builds a project into `target/NAME.wasm`, which carries its manifest.

use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use clap::Args;
use longhaul_api::wire::plugins::BuiltPluginView;
use longhaul_build::cache::{create_dir, write_whole};
use longhaul_build::{MANIFEST, PluginBuilder, PluginProject, toml_error};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _};
use longhaul_plugins::manifest::PluginManifest;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[derive(Args, Debug)]
pub struct BuildArgs {
    /// The folder with plugin.toml.
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Build again whenever a file of the project changes, until Ctrl-C.
    #[arg(long)]
    watch: bool,
}

/// Interval between two looks at the files of a watched project.
const LOOK: Duration = Duration::from_millis(500);

/// Runs the command.
pub async fn run(context: &Context, args: &BuildArgs) -> fault::Result<Exit> {
    let directory = context.project.join(&args.directory);
    if !args.watch {
        return build(context, &directory);
    }
    loop {
        // Taken before the build, so that a change during the build starts the next one.
        let built = state(&directory);
        if let Err(error) = build(context, &directory) {
            say(&format!("error: {error:#}"));
        }
        say("waiting for a change; interrupt with Ctrl-C");
        while state(&directory) == built {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                interrupted = tokio::signal::ctrl_c() => {
                    interrupted?;
                    return Ok(Exit::Done);
                }
            }
        }
    }
}

/// A digest of all files that a build reads; none while the project cannot be read.
fn state(directory: &Path) -> Option<Digest> {
    PluginProject::open(directory).and_then(|project| project.digest()).ok()
}

fn build(context: &Context, directory: &Path) -> fault::Result<Exit> {
    let start = Instant::now();
    let project = PluginProject::open(directory)?;
    check_asks(&project)?;
    let bytes = PluginBuilder::embedded(say)?.build(&project)?;
    let path = project.component_path();
    create_dir(path.parent().context("a component is in a folder")?)?;
    write_whole(&path, &bytes)?;
    let (digest, seconds) = (Digest::of(&bytes), start.elapsed().as_secs_f64());
    if context.json {
        print_json(&BuiltPluginView {
            name: project.name().to_owned(),
            version: project.version().to_owned(),
            world: project.world().to_owned(),
            language: project.language().word().to_owned(),
            path: path.display().to_string(),
            bytes: bytes.len(),
            digest: digest.to_string(),
            seconds,
        })?;
    } else {
        let (name, version, world) = (project.name(), project.version(), project.world());
        outln!("{}", path.display());
        outln!("{name} {version}, {world}, {} bytes, {seconds:.1} s\nsha256 {digest}", bytes.len());
    }
    Ok(Exit::Done)
}

/// Refuses a manifest that the host could not read, before the plugin runs.
fn check_asks(project: &PluginProject) -> fault::Result<()> {
    let (path, text) = (project.dir().join(MANIFEST), project.manifest());
    toml::from_str::<PluginManifest>(text).map_err(|error| toml_error(&path, text, &error))?;
    Ok(())
}

/// Prints progress of a build, apart from its result.
pub fn say(line: &str) {
    errln!("{line}");
}
