//! Debian's Rust compiler, unpacked privately, with a `std` for the guests' target built once.
//!
//! `apt-get download` fetches the packages, so signatures are checked, and `dpkg -x` unpacks them, so nothing is
//! installed and no root is needed. The system's package lists are only read: if they are missing or too old, private
//! ones are fetched beside the prefix. `std` is built here, once, and put into the compiler's library folder, instead
//! of with `-Zbuild-std` at each build: it then serves every clone, and guests build without any unstable flag.

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

/// The package whose version determines the version of all others.
const COMPILER: &str = "rustc-web";

/// The oldest accepted compiler: the one that the manifests of this repository require.
const VERSION_MIN: &str = env!("CARGO_PKG_RUST_VERSION");

/// The file in a prefix that holds the version of its packages.
const VERSION_FILE: &str = "version";

/// The crate with `std` as a dependency.
const STD_USER: &str = "std_user";

/// The folder that holds the compiler and the target's `std`; filled if necessary.
///
/// Its name holds the oldest accepted version and not the newest one, since a request for that one would cost each
/// build a second. To get a newer one, remove the folder.
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

/// The program to start as `rustc`.
pub(crate) fn rustc(prefix: &Path) -> PathBuf {
    prefix.join("rustc")
}

/// Fetches and unpacks the compiler, the libraries that the machine lacks and the sources of `std`.
fn unpack(cache: &Cache, packages: &DebianPackages, prefix: &Path) -> Result<String> {
    let version = packages.candidate(COMPILER)?;
    let release = release(&version);
    let standard = format!("libstd-rust-web-{release}");
    let mut wanted: BTreeSet<String> = [COMPILER, "libstd-rust-web-dev", "rust-web-src", &standard]
        .map(|package| format!("{package}={version}"))
        .into();
    wanted.extend(packages.missing_libraries(&standard, &[])?);

    cache.say(&format!("fetching Debian's rustc {version} (140 MB, once)"));
    packages.unpack(&wanted, prefix)?;
    link_sources(prefix, release)?;
    Ok(version)
}

/// Links the sources at the path that `-Zbuild-std` reads. The package's own link leads out of the prefix.
fn link_sources(prefix: &Path, release: &str) -> Result<()> {
    let sources = entries(&prefix.join("usr/src"))?
        .into_iter()
        .find(|dir| dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("rustc-{release}"))))
        .ok_or_else(|| {
            BuildError::toolchain(format!("the package `rust-web-src` has no `usr/src/rustc-{release}*`"))
        })?;
    let place = prefix.join("usr/lib/rustlib/src/rust");
    // A link, dangling or not, is removed as a file; a missing one is fine.
    let _ = fs::remove_file(&place);
    if let Some(parent) = place.parent() {
        create_dir(parent)?;
    }
    std::os::unix::fs::symlink(&sources, &place).at("link to the sources of std", &place)
}

/// Writes the script that starts only the compiler with its own libraries.
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
        // Cargo leaves bitcode out if it sees no use for it; a guest with `lto` needs it.
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-Cembed-bitcode=yes")
        // Our standard output is for our own results.
        .stdout(io::stderr());
    run("build std for the guests", &mut cargo)?;
    install_std(prefix, &user)?;
    // It is half of the prefix's size, and not needed after the libraries are built.
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

/// The tools on lists that offer a compiler of at least [`VERSION_MIN`]; private lists go into `dir`.
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

/// The release of a package's version: `1.96` of `1.96.0+dfsg1-1~deb12u2`.
fn release(version: &str) -> &str {
    let end = version.match_indices('.').nth(1).map(|(index, _)| index);
    &version[..end.unwrap_or(version.len())]
}

/// Major and minor number; none, which is less than any version, if there are none.
fn number(version: &str) -> Option<(u32, u32)> {
    let (major, minor) = release(version).split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Reads a small text file of this module.
fn read_line(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).at("read", path)?;
    Ok(text.trim().to_owned())
}

fn remove(dir: &Path) -> Result<()> {
    fs::remove_dir_all(dir).at("remove", dir)
}
