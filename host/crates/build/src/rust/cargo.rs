//! The target that guests are built for, and cargo without the environment of an outer build.

use std::process::Command;

/// Guests that need files or HTTP import `wasi:` interfaces in their world, so that the bare target serves them all and
/// no libc and no adapter must be shipped.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// Cargo as in a new terminal.
///
/// Under `cargo xtask` the outer cargo has set its own variables. Flags and folders meant for the host would reach the
/// guests, and values that change between runs would make cargo build again.
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
