//! `longhaul plugin pack`: puts a manifest into a component that another tool chain has built.

use crate::context::Context;
use crate::exit::Exit;
use crate::order::print_json;
use clap::Args;
use longhaul_build::cache::write_whole;
use longhaul_build::{MANIFEST, toml_error, with_manifest, without_manifest};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_engine::{CompileLimits, sections};
use longhaul_plugins::manifest::PluginManifest;
use longhaul_plugins::{InspectedPlugin, read_bounded};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct PackArgs {
    /// The component.
    #[arg(value_name = "FILE")]
    component: PathBuf,
    /// The manifest.
    #[arg(long, value_name = "FILE", default_value = MANIFEST)]
    manifest: PathBuf,
    /// The file to write. Default: the component's own file.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the manifest that the component carries.
    #[arg(long)]
    replace: bool,
}

/// Runs the command.
pub fn run(context: &Context, args: &PackArgs) -> fault::Result<Exit> {
    let name = args.component.file_stem().unwrap_or_default().to_string_lossy();
    let mut bytes = read_bounded(&name, &args.component, &CompileLimits::default())?;
    if args.replace {
        bytes = without_manifest(&bytes);
    }
    if sections(&name, &bytes)?.manifest.is_some() {
        bail!("`{}` carries a manifest already; add --replace to put another in its place", args.component.display());
    }
    let text = std::fs::read_to_string(&args.manifest)
        .with_context(|| format!("cannot read the manifest `{}`", args.manifest.display()))?;
    let manifest: PluginManifest = toml::from_str(&text).map_err(|error| toml_error(&args.manifest, &text, &error))?;
    longhaul_build::check_form(&manifest.name)?;
    let packed = with_manifest(bytes, &text)?;
    let output = args.output.as_ref().unwrap_or(&args.component);
    let known = InspectedPlugin::of(output, &packed)?;
    write_whole(output, &packed)?;
    if context.json {
        print_json(&known.view()?)?;
    } else {
        outln!("{}", output.display());
        known.lines().iter().for_each(|line| outln!("{line}"));
    }
    Ok(Exit::Done)
}
