//! The choice of the compiler and the `std` for the guests.
//!
//! Tried in order: rustup's wasm target, a wasm target that rustup can add, and Debian's compiler with its own `std`
//! sources, unpacked privately into the cache. No package is installed, no package list of the system is changed, and
//! no root is needed. An unresponsive network costs half a minute a day, not at each build.

use super::cargo::{TARGET, clean_cargo};
use super::debian;
use crate::cache::{Cache, write_whole};
use crate::error::BuildError;
use crate::process::{capture, capture_within};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::time::Duration;

type Result<T> = std::result::Result<T, BuildError>;

/// The timeout of `rustup target add`. Rustup's own server does not respond in every network; then it hangs instead of
/// failing.
const TARGET_ADD_LIMIT: Duration = Duration::from_secs(30);

/// The period after a failure of `rustup target add` without a new attempt.
const TARGET_ADD_AGAIN: Duration = Duration::from_hours(24);

/// The tool chain that the caller wants: `auto`, `rustup` or `debian`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolchainChoice {
    /// Rustup's if it is available, else Debian's.
    #[default]
    Auto,
    /// Rustup's, or an error.
    Rustup,
    /// Debian's compiler in the cache, or an error.
    Debian,
}

impl FromStr for ToolchainChoice {
    type Err = BuildError;

    fn from_str(word: &str) -> Result<Self> {
        match word {
            "auto" => Ok(Self::Auto),
            "rustup" => Ok(Self::Rustup),
            "debian" => Ok(Self::Debian),
            _ => Err(BuildError::toolchain(format!(
                "there is no tool chain `{word}`; write one of: auto, rustup, debian"
            ))),
        }
    }
}

/// A tool chain that can build for [`TARGET`].
pub(crate) enum Toolchain {
    /// The tool chain in use has the target.
    Rustup { release: String },
    /// Debian's compiler, with a `std` that was built once into the cache.
    Debian { prefix: PathBuf, version: String, linker: PathBuf },
}

impl Toolchain {
    pub(crate) fn choose(cache: &Cache, wanted: ToolchainChoice) -> Result<Self> {
        let host = HostRust::ask()?;
        if wanted != ToolchainChoice::Debian {
            match host.with_target(cache) {
                Ok(()) => {
                    return Ok(Self::Rustup { release: host.release });
                }
                Err(error) if wanted == ToolchainChoice::Rustup => return Err(error),
                Err(error) => cache.say(&format!("{error}; taking Debian's compiler")),
            }
        }
        let linker = host.rust_lld()?;
        let prefix = debian::prefix(cache, &host.triple, &linker)?;
        let version = debian::version(&prefix)?;
        Ok(Self::Debian { prefix, version, linker })
    }

    /// One line of text for people.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Rustup { release } => format!("rustc {release} with rustup's {TARGET}"),
            Self::Debian { prefix, version, .. } => {
                format!("Debian's rustc {version} in `{}`", prefix.display())
            }
        }
    }

    /// Cargo with this tool chain, and without the variables of the host's build.
    pub(crate) fn cargo(&self) -> Command {
        let mut cargo = clean_cargo();
        match self {
            Self::Rustup { .. } => {}
            Self::Debian { prefix, linker, .. } => {
                cargo.env("RUSTC", debian::rustc(prefix));
                cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
            }
        }
        cargo
    }
}

/// The compiler that builds the host.
struct HostRust {
    release: String,
    triple: String,
    sysroot: PathBuf,
}

impl HostRust {
    fn ask() -> Result<Self> {
        let doing = "ask for the tool chain in use";
        let verbose = capture(doing, Command::new("rustc").args(["-vV"]))?;
        let field = |name: &str| {
            let value = verbose.lines().find_map(|line| line.strip_prefix(name));
            value
                .map(str::to_owned)
                .ok_or_else(|| BuildError::toolchain(format!("{doing}: `rustc -vV` has no line `{name}`")))
        };
        let sysroot = capture(doing, Command::new("rustc").args(["--print", "sysroot"]))?;
        Ok(Self { release: field("release: ")?, triple: field("host: ")?, sysroot: PathBuf::from(sysroot.trim()) })
    }

    /// Succeeds when the tool chain has [`TARGET`]; adds it if necessary.
    fn with_target(&self, cache: &Cache) -> Result<()> {
        if self.has_target() {
            return Ok(());
        }
        let failed_before = cache.path("rustup-target-add.failed");
        if is_younger(&failed_before, TARGET_ADD_AGAIN) {
            return Err(BuildError::toolchain(format!(
                "`rustup target add {TARGET}` failed less than a day ago (to try now: remove {})",
                failed_before.display()
            )));
        }
        let added = self.add_target(cache);
        if let Err(error) = &added {
            write_whole(&failed_before, format!("{error}\n").as_bytes())?;
        }
        added
    }

    fn add_target(&self, cache: &Cache) -> Result<()> {
        cache.say(&format!("adding {TARGET} with rustup"));
        let mut rustup = Command::new("rustup");
        rustup.args(["target", "add", TARGET]);
        capture_within("add the wasm target", &mut rustup, TARGET_ADD_LIMIT)?;
        if !self.has_target() {
            return Err(BuildError::toolchain(format!(
                "`rustup target add {TARGET}` succeeded, but `{}` has no such target; \
                 is the `rustc` on PATH not rustup's?",
                self.sysroot.display()
            )));
        }
        Ok(())
    }

    /// True when `std` exists: rustup leaves the folder behind when it removes a target.
    fn has_target(&self) -> bool {
        let lib = self.sysroot.join("lib/rustlib").join(TARGET).join("lib");
        fs::read_dir(lib).is_ok_and(|entries| {
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with("libstd-"))
        })
    }

    fn rust_lld(&self) -> Result<PathBuf> {
        let bin = Path::new("lib/rustlib").join(&self.triple).join("bin/rust-lld");
        let path = self.sysroot.join(bin);
        if !path.is_file() {
            return Err(BuildError::toolchain(format!(
                "`{}` is missing, and plugins are linked with it; use a tool chain of rustup's",
                path.display()
            )));
        }
        Ok(path)
    }
}

fn is_younger(path: &Path, age: Duration) -> bool {
    let elapsed = || fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    elapsed().is_some_and(|elapsed| elapsed < age)
}
