//! The custom section in which a component carries its own manifest, so that a plugin is one file.

/// The name of the section. It holds the text of `plugin.toml`, in UTF-8, at the outermost level of the component.
pub const MANIFEST: &str = "longhaul:manifest";

/// The most bytes of that text.
pub const MANIFEST_BYTES_MAX: usize = 64 << 10;
