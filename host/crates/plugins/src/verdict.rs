//! The rules for a plugin's name, version and world, and for the order of versions.
//!
//! `plugin check`, `plugin install`, `conform` and a run use the same rules, so none of them accepts what another
//! refuses. The engine checks that a tool names each of its functions once, whenever it is described. This module
//! grants nothing.

use crate::manifest::PluginManifest;
use longhaul_core::fault::{self, bail};
use longhaul_core::text::printable;
use longhaul_engine::Role;
use semver::Version;
use std::cmp::Ordering;

/// Longest version, in characters.
const VERSION_CHARS_MAX: usize = 64;

/// Refuses a manifest with an invalid name or version.
pub fn check_names(manifest: &PluginManifest) -> fault::Result<()> {
    if manifest.name.is_empty() {
        bail!("its manifest has no name; write name = \"...\" into its plugin.toml");
    }
    longhaul_build::check_form(&manifest.name)?;
    let version = &manifest.version;
    let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '+' | '_');
    if version.is_empty() || version.len() > VERSION_CHARS_MAX || !version.chars().all(is_plain) {
        let shown = printable(version, VERSION_CHARS_MAX);
        bail!("its version is `{shown}`; write one such as 1.2.0 into its plugin.toml");
    }
    Ok(())
}

/// Refuses a world that differs from the component's role; no world claims nothing.
pub fn check_world(world: Option<&str>, role: Role) -> fault::Result<()> {
    let role = role.name();
    match world {
        Some(world) if world != format!("{role}-plugin") => {
            let world = printable(world, VERSION_CHARS_MAX);
            bail!("its manifest says world = \"{world}\", and the component has the role {role}; write {role}-plugin")
        }
        _ => Ok(()),
    }
}

/// Refuses a manifest that does not fit a component of this role.
pub fn check(manifest: &PluginManifest, role: Role) -> fault::Result<()> {
    check_names(manifest)?;
    check_world(manifest.world.as_deref(), role)
}

/// True when one version is older than another, as far as both are numbers with dots.
pub fn is_older(version: &str, than: &str) -> bool {
    matches!((read(version), read(than)), (Some(version), Some(than)) if version.cmp_precedence(&than) == Ordering::Less)
}

/// `1` and `1.2` count as `1.0.0` and `1.2.0`.
fn read(version: &str) -> Option<Version> {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    let missing = ".0".repeat(2_usize.saturating_sub(numbers.matches('.').count()));
    Version::parse(&format!("{numbers}{missing}{}", &version[numbers.len()..])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn says(manifest: &str, expected: &str) {
        let manifest = PluginManifest::parse(manifest).unwrap();
        let said = check(&manifest, Role::Tool).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(if expected.is_empty() { said.is_empty() } else { said.contains(expected) }, "{said}");
    }

    #[test]
    fn a_manifest_has_a_name_a_version_and_the_world_of_its_component() {
        says("name = \"a\"\nversion = \"1.2.0-rc.1+b_2\"\nworld = \"tool-plugin\"", "");
        says("name = \"a\"\nversion = \"1\"", "");
        says("version = \"1\"", "its manifest has no name; write name = \"...\"");
        says("name = \"A\"\nversion = \"1\"", "`A` is no name of a plugin");
        says("name = \"a\"", "its version is ``; write one such as 1.2.0");
        says("name = \"a\"\nversion = \"1\\n2\"", "its version is `1 2`");
        says(&format!("name = \"a\"\nversion = \"{}\"", "1".repeat(64)), "");
        says(&format!("name = \"a\"\nversion = \"{}\"", "1".repeat(65)), "its version is `1");
        let world =
            "its manifest says world = \"agent-plugin\", and the component has the role tool; write tool-plugin";
        says("name = \"a\"\nversion = \"1\"\nworld = \"agent-plugin\"", world);
    }

    #[test]
    fn a_version_is_older_when_its_numbers_are() {
        for (version, than, expected) in [
            ("1.9.0", "1.10.0", true),
            ("1.10.0", "1.9.0", false),
            ("1", "1.0.1", true),
            ("1.0", "1.0.0", false),
            ("1.0.0-rc.1", "1.0.0", true),
            ("1.0.0+b", "1.0.0+a", false),
            // Versions without numbers have no order.
            ("nightly", "1.0.0", false),
            ("1.0.0", "stable", false),
        ] {
            assert_eq!(is_older(version, than), expected, "{version} and {than}");
        }
    }
}
