//! The target that guests are built for, and cargo without the environment of a build that is under way.

use std::process::Command;

/// Guests that need files or HTTP ask for `wasi:` interfaces in their world, so that the bare
/// target serves them all and there is no libc and no adapter to ship.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// Cargo as for a person who has just opened a terminal.
///
/// Under `cargo xtask` the outer cargo has set its own variables. Flags and folders meant for the
/// host would reach the guests, and what changes between runs would make cargo build anew.
pub(super) fn clean_cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let from_outside = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_MANIFEST_")
                || name.starts_with("CARGO_PROFILE_")
                || name.starts_with("CARGO_BUILD_")
        });
        if from_outside {
            cargo.env_remove(name);
        }
    }
    for name in ["CARGO_TARGET_DIR", "CARGO_ENCODED_RUSTFLAGS", "RUSTFLAGS", "RUSTC", "LD_LIBRARY_PATH"] {
        cargo.env_remove(name);
    }
    cargo
}
