//! Debian's Rust compiler, unpacked privately, with a `std` for the guests' target built once.
//!
//! Packages are fetched with `apt-get download`, so signatures are checked, and unpacked with
//! `dpkg -x`, so nothing is installed and no root is needed. The system's package lists are only
//! read: when they are missing or too old, private ones are fetched beside the prefix.
//! `std` is built here, once, and put where the compiler looks for it, rather than with
//! `-Zbuild-std` at each build: it then serves every clone, and guests build without any unstable
//! flag.

use super::cargo::{TARGET, clean_cargo};
use crate::cache::{Cache, create_dir, entries, read, write_whole};
use crate::debian_packages::DebianPackages;
use crate::error::{AtPath, BuildError};
use crate::process::run;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

type Result<T> = std::result::Result<T, BuildError>;

/// The package whose version decides about all others.
const COMPILER: &str = "rustc-web";

/// The oldest compiler that will do: what the manifests of this repository ask for.
const VERSION_MIN: &str = env!("CARGO_PKG_RUST_VERSION");

/// The file in a prefix that holds the version of its packages.
const VERSION_FILE: &str = "version";

/// The crate that `std` is built as a dependency of.
const STD_USER: &str = "std_user";

/// The folder that holds the compiler and the target's `std`, filled if need be.
///
/// Its name holds the oldest version that will do and not the newest there is, since asking for
/// that one would cost each build a second. To take a newer one, remove the folder.
pub(crate) fn prefix(cache: &Cache, triple: &str, linker: &Path) -> Result<PathBuf> {
    cache.folder(&format!("debian-rust-{VERSION_MIN}"), |prefix| {
        let packages = with_compiler(cache, &prefix.join("apt"))?;
        let version = unpack(cache, &packages, prefix)?;
        if let Some(lists) = packages.into_private_dir() {
            remove(&lists)?;
        }
        write_wrapper(prefix, triple)?;
        build_std(cache, prefix, linker)?;
        write_whole(&prefix.join(VERSION_FILE), version.as_bytes())
    })
}

pub(crate) fn version(prefix: &Path) -> Result<String> {
    read_line(&prefix.join(VERSION_FILE))
}

/// What to start as `rustc`.
pub(crate) fn rustc(prefix: &Path) -> PathBuf {
    prefix.join("rustc")
}

/// Fetches and unpacks the compiler, the libraries it lacks here and the sources of `std`.
fn unpack(cache: &Cache, packages: &DebianPackages, prefix: &Path) -> Result<String> {
    let version = packages.candidate(COMPILER)?;
    let release = release(&version);
    let standard = format!("libstd-rust-web-{release}");
    let mut wanted: BTreeSet<String> = [COMPILER, "libstd-rust-web-dev", "rust-web-src", &standard]
        .map(|package| format!("{package}={version}"))
        .into();
    wanted.extend(packages.missing_libraries(&standard)?);

    cache.say(&format!("fetching Debian's rustc {version} (140 MB, once)"));
    packages.unpack(&wanted, prefix)?;
    link_sources(prefix, release)?;
    Ok(version)
}

/// Puts the sources where `-Zbuild-std` looks. The package's own link leads out of the prefix.
fn link_sources(prefix: &Path, release: &str) -> Result<()> {
    let sources = entries(&prefix.join("usr/src"))?
        .into_iter()
        .find(|dir| dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("rustc-{release}"))))
        .ok_or_else(|| {
            BuildError::toolchain(format!("the package `rust-web-src` has no `usr/src/rustc-{release}*`"))
        })?;
    let place = prefix.join("usr/lib/rustlib/src/rust");
    // A link, dangling or not, is removed as a file; a missing one is what we want.
    let _ = fs::remove_file(&place);
    if let Some(parent) = place.parent() {
        create_dir(parent)?;
    }
    std::os::unix::fs::symlink(&sources, &place).at("link to the sources of std", &place)
}

/// Writes the script that starts the compiler with its own libraries, and nothing else with them.
fn write_wrapper(prefix: &Path, triple: &str) -> Result<()> {
    let architecture = triple.split('-').next().unwrap_or(triple);
    let script = format!(
        "#!/bin/sh\n\
         here=$(dirname \"$0\")\n\
         LD_LIBRARY_PATH=\"$here/usr/lib/{architecture}-linux-gnu\" \\\n\
         exec \"$here/usr/bin/rustc\" \"$@\"\n"
    );
    let path = rustc(prefix);
    write_whole(&path, script.as_bytes())?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).at("make executable", &path)
}

/// Builds `std` for the guests' target and puts it into the compiler's own library folder.
fn build_std(cache: &Cache, prefix: &Path, linker: &Path) -> Result<()> {
    cache.say(&format!("building std for {TARGET} (about a minute, once)"));
    let user = prefix.join("std-user");
    create_dir(&user.join("src"))?;
    let manifest = format!(
        "[package]\nname = \"{STD_USER}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [workspace]\n"
    );
    write_whole(&user.join("Cargo.toml"), manifest.as_bytes())?;
    write_whole(&user.join("src/lib.rs"), b"")?;

    let mut cargo = clean_cargo();
    cargo
        .args(["build", "--quiet", "--release", "--target", TARGET])
        .arg("-Zbuild-std=std,panic_abort")
        .arg("--target-dir")
        .arg(user.join("target"))
        .current_dir(&user)
        .env("RUSTC", rustc(prefix))
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker)
        // Cargo is rustup's stable one, which otherwise refuses `-Z`.
        .env("RUSTC_BOOTSTRAP", "1")
        // Cargo leaves bitcode out where it sees no use for it; a guest with `lto` needs it.
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Cembed-bitcode=yes")
        // Standard output is for what we were asked.
        .stdout(io::stderr());
    run("build std for the guests", &mut cargo)?;
    install_std(prefix, &user)?;
    // Half of the prefix's size, and of no use once the libraries are built.
    remove(&user)?;
    remove(&prefix.join("usr/src"))
}

fn install_std(prefix: &Path, user: &Path) -> Result<()> {
    let built = user.join("target").join(TARGET).join("release/deps");
    let place = prefix.join("usr/lib/rustlib").join(TARGET).join("lib");
    create_dir(&place)?;
    for library in entries(&built)? {
        let Some(name) = library.file_name().map(|name| name.to_string_lossy()) else {
            continue;
        };
        if !name.ends_with(".rlib") || name.starts_with(&format!("lib{STD_USER}")) {
            continue;
        }
        write_whole(&place.join(&*name), &read(&library)?)?;
    }
    Ok(())
}

/// On lists that offer a compiler of at least [`VERSION_MIN`]; private ones go into `dir`.
fn with_compiler(cache: &Cache, dir: &Path) -> Result<DebianPackages> {
    let system = DebianPackages::system();
    if offers_compiler(&system)? {
        return Ok(system);
    }
    let private = DebianPackages::private(cache, dir)?;
    if offers_compiler(&private)? {
        return Ok(private);
    }
    Err(BuildError::toolchain(format!(
        "Debian's package `{COMPILER}` is not offered here in version {VERSION_MIN} or later; \
         run `rustup target add {TARGET}` where rustup can reach its server, or build on Debian 12"
    )))
}

fn offers_compiler(packages: &DebianPackages) -> Result<bool> {
    let candidate = packages.candidate(COMPILER)?;
    Ok(number(&candidate) >= number(VERSION_MIN))
}

/// `1.96` of `1.96.0+dfsg1-1~deb12u2`.
fn release(version: &str) -> &str {
    let end = version.match_indices('.').nth(1).map(|(index, _)| index);
    &version[..end.unwrap_or(version.len())]
}

/// Major and minor number, or nothing that is less than any version.
fn number(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = release(version).split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Reads a small text file of ours.
fn read_line(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).at("read", path)?;
    Ok(text.trim().to_owned())
}

fn remove(dir: &Path) -> Result<()> {
    fs::remove_dir_all(dir).at("remove", dir)
}
