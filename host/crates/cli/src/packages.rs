//! `longhaul packages`: the packages of Python that tools of a project import.
//!
//! Only this command writes the lock of a project; runs follow it, and never change it.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use super::plugin::say;
use clap::Subcommand;
use longhaul_api::wire::packages::{LockedPackageView, PackageLockView};
use longhaul_build::cache::write_whole;
use longhaul_config::Config;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::packages::PackageLock;
use longhaul_packages::PackageCache;
use longhaul_plugins::python_packages::{lock_file, locked, wanted};
use std::path::Path;

#[derive(Subcommand, Debug)]
pub enum PackagesCommand {
    /// Resolve the packages that tools of longhaul.toml want, fetch them, and write them with their digests to
    /// packages.lock. Packages with compiled modules are refused.
    Lock,
    /// List the packages of packages.lock.
    List,
}

/// Runs the command.
pub fn run(context: &Context, command: PackagesCommand) -> fault::Result<Exit> {
    let project = std::path::absolute(&context.project)?;
    let config = Config::read(&project)?;
    let lock = match command {
        PackagesCommand::Lock => lock(&config, &project)?,
        PackagesCommand::List => locked(&config, &project)?
            .context("longhaul.toml wants no packages; add to a tool: packages = [\"NAME\"]")?,
    };
    show(context, &project, lock)?;
    Ok(Exit::Done)
}

fn lock(config: &Config, project: &Path) -> fault::Result<PackageLock> {
    let wants = wanted(config);
    if wants.is_empty() {
        bail!("longhaul.toml wants no packages; add to a tool: packages = [\"NAME\"]");
    }
    let cache = PackageCache::open(say)?;
    let lock = cache.resolve(&wants)?;
    // Laid out before it is written: a wheel that is refused must not be in a lock.
    cache.grant(&lock)?;
    // Put in its place: a repository may bring a link along, to anything.
    write_whole(&lock_file(project), lock.to_string().as_bytes())?;
    Ok(lock)
}

fn show(context: &Context, project: &Path, lock: PackageLock) -> fault::Result<()> {
    if context.json {
        return print_json(&PackageLockView {
            path: lock_file(project).display().to_string(),
            wants: lock.wants.into_iter().map(String::from).collect(),
            packages: lock.packages.into_iter().map(LockedPackageView::from).collect(),
        });
    }
    for package in &lock.packages {
        outln!("{} {}  sha256 {}", package.name, package.version, package.sha256.short());
    }
    Ok(())
}
