//! Debian's Rust compiler, unpacked privately, with a `std` for the guests' target built once.
//!
//! Packages are fetched with `apt-get download`, so signatures are checked, and unpacked with
//! `dpkg -x`, so nothing is installed and no root is needed. The system's package lists are only
//! read: when they are missing or too old, private ones are fetched beside the prefix.
//! `std` is built here, once, and put where the compiler looks for it, rather than with
//! `-Zbuild-std` at each build: it then serves every clone, and guests build without any unstable
//! flag.

use super::TARGET;
use super::toolchain::{clean_cargo, read_line};
use crate::cache::{Cache, create_dir, entries, read, write_whole};
use crate::error::{At, BuildError};
use crate::process::{capture, run};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, BuildError>;

/// The package whose version decides about all others.
const COMPILER: &str = "rustc-web";

/// The oldest compiler that will do: what the manifests of this repository ask for.
const VERSION_MIN: &str = env!("CARGO_PKG_RUST_VERSION");

/// The file in a prefix that holds the version of its packages.
const VERSION_FILE: &str = "version";

/// The settings of apt with private lists.
const SETTINGS_FILE: &str = "apt.conf";

/// The crate that `std` is built as a dependency of.
const STD_USER: &str = "std_user";

/// The folder that holds the compiler and the target's `std`, filled if need be.
///
/// Its name holds the oldest version that will do and not the newest there is, since asking for
/// that one would cost each build a second. To take a newer one, remove the folder.
pub(crate) fn prefix(cache: &Cache, triple: &str, linker: &Path) -> Result<PathBuf> {
    cache.folder(&format!("debian-rust-{VERSION_MIN}"), |prefix| {
        let apt = Apt::with_compiler(cache, &prefix.join("apt"))?;
        let version = unpack(cache, &apt, prefix)?;
        if let Some(lists) = apt.private_dir {
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
fn unpack(cache: &Cache, apt: &Apt, prefix: &Path) -> Result<String> {
    let version = apt.candidate(COMPILER)?;
    let release = release(&version);
    let standard = format!("libstd-rust-web-{release}");
    let mut wanted: BTreeSet<String> = [COMPILER, "libstd-rust-web-dev", "rust-web-src", &standard]
        .map(|package| format!("{package}={version}"))
        .into();
    wanted.extend(apt.missing_libraries(&standard)?);

    cache.say(&format!("fetching Debian's rustc {version} (140 MB, once)"));
    let debs = prefix.join("debs");
    create_dir(&debs)?;
    let mut download = apt.command("apt-get");
    download.args(["--quiet", "download"]).args(&wanted);
    capture("fetch Debian's compiler", download.current_dir(&debs))?;
    for deb in entries(&debs)? {
        let mut dpkg = Command::new("dpkg");
        capture("unpack Debian's compiler", dpkg.arg("-x").arg(&deb).arg(prefix))?;
    }
    remove(&debs)?;
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

/// Debian's package tools, on the system's lists or on private ones.
struct Apt {
    /// The folder of the private lists, with [`SETTINGS_FILE`] in it.
    private_dir: Option<PathBuf>,
}

impl Apt {
    /// On lists that offer a compiler of at least [`VERSION_MIN`].
    ///
    /// Private lists go into `dir`.
    fn with_compiler(cache: &Cache, dir: &Path) -> Result<Self> {
        let system = Self { private_dir: None };
        if system.offers_compiler()? {
            return Ok(system);
        }
        let private = Self::private(cache, dir)?;
        if private.offers_compiler()? {
            return Ok(private);
        }
        Err(BuildError::toolchain(format!(
            "Debian's package `{COMPILER}` is not offered here in version {VERSION_MIN} or later; \
             run `rustup target add {TARGET}` where rustup can reach its server, or build on Debian 12"
        )))
    }

    /// On fresh lists in `dir`, which ask for no root and leave the system's alone.
    fn private(cache: &Cache, dir: &Path) -> Result<Self> {
        cache.say("fetching Debian's package lists");
        for part in ["lists/partial", "cache/archives/partial"] {
            create_dir(&dir.join(part))?;
        }
        // The system's hooks work on the system's folders, so they are dropped. Root would hand over
        // to a user who may not read below root's home.
        let settings = format!(
            "#clear APT::Update::Post-Invoke;\n\
             #clear APT::Update::Post-Invoke-Success;\n\
             Dir::State::lists \"{dir}/lists/\";\n\
             Dir::Cache \"{dir}/cache/\";\n\
             APT::Sandbox::User \"root\";\n",
            dir = dir.display()
        );
        write_whole(&dir.join(SETTINGS_FILE), settings.as_bytes())?;
        let apt = Self { private_dir: Some(dir.to_owned()) };
        let mut update = apt.command("apt-get");
        capture("fetch Debian's package lists", update.args(["--quiet", "update"]))?;
        Ok(apt)
    }

    fn offers_compiler(&self) -> Result<bool> {
        let candidate = self.candidate(COMPILER)?;
        Ok(number(&candidate) >= number(VERSION_MIN))
    }

    /// The version that would be installed; `(none)`, or nothing, when there is none.
    fn candidate(&self, package: &str) -> Result<String> {
        let mut policy = self.command("apt-cache");
        let text =
            capture("ask for Debian's compiler, since rustup has no wasm target", policy.args(["policy", package]))?;
        let candidate = text.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
        Ok(candidate.unwrap_or_default().to_owned())
    }

    /// The libraries that `package` needs, down to the last, and that are not installed.
    fn missing_libraries(&self, package: &str) -> Result<BTreeSet<String>> {
        let mut missing = BTreeSet::new();
        let mut open = vec![package.to_owned()];
        while let Some(package) = open.pop() {
            for library in self.dependencies(&package)? {
                if !is_installed(&library) && missing.insert(library.clone()) {
                    open.push(library);
                }
            }
        }
        Ok(missing)
    }

    fn dependencies(&self, package: &str) -> Result<Vec<String>> {
        let mut depends = self.command("apt-cache");
        depends.args(["depends", "--important", package]);
        let text = capture("ask for the libraries of Debian's compiler", &mut depends)?;
        let names = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            // In angle brackets are names that several packages provide; no library is among them.
            .filter(|name| !name.starts_with('<'));
        Ok(names.map(str::to_owned).collect())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        // We read what it prints.
        command.env("LC_ALL", "C");
        if let Some(dir) = &self.private_dir {
            command.arg("-c").arg(dir.join(SETTINGS_FILE));
        }
        command
    }
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    query.args(["--show", "--showformat=${db:Status-Status}\n", package]);
    capture("ask for an installed library", &mut query)
        .is_ok_and(|states| states.lines().any(|state| state == "installed"))
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

fn remove(dir: &Path) -> Result<()> {
    fs::remove_dir_all(dir).at("remove", dir)
}
