//! The dependencies of a Node.js project, as a directory of links in the work directory of a program.
//!
//! The directory is the program's own, since tools keep caches in it; the targets of the links are read-only. An entry
//! that is a link itself leads to a package of the work, or to pnpm's store beside it: it is copied as a link with the
//! same target, so that it resolves to the work and not to the checkout. Refuses to follow any link.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Makes `place`, with a link for each entry of `modules`.
pub(crate) fn link(modules: &Path, place: &Path) -> io::Result<()> {
    fs::create_dir(place)?;
    for entry in modules.read_dir()? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let (path, place) = (modules.join(&name), place.join(&name));
        if kind.is_symlink() {
            symlink(fs::read_link(&path)?, place)?;
        } else if kind.is_dir() && is_scope(name.as_encoded_bytes()) {
            link(&path, &place)?;
        } else if !is_of_tools(name.as_encoded_bytes()) {
            symlink(path, place)?;
        }
    }
    Ok(())
}

/// True when a name is a scope: packages of an organization are in a directory of their own. Scopes do not nest.
fn is_scope(name: &[u8]) -> bool {
    name.starts_with(b"@")
}

/// True when a name is a cache that tools make again. Through a link they could not write to it.
fn is_of_tools(name: &[u8]) -> bool {
    matches!(name, b".cache" | b".vite" | b".vite-temp" | b".vitest")
}

#[cfg(test)]
mod tests {
    use super::link;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn packages_are_linked_and_links_keep_their_words() {
        let dir = tempfile::tempdir().expect("a directory");
        let (modules, place) = (dir.path().join("node_modules"), dir.path().join("work"));
        for name in ["dep", "@org/part", ".bin", ".cache/x"] {
            fs::create_dir_all(modules.join(name)).expect("made");
        }
        symlink("../packages/own", modules.join("own")).expect("made");
        symlink("../../packages/ours", modules.join("@org/ours")).expect("made");
        link(&modules, &place).expect("linked");
        let leads_to = |name: &str| fs::read_link(place.join(name)).expect("a link");
        for name in ["dep", "@org/part", ".bin"] {
            assert_eq!(leads_to(name), modules.join(name));
        }
        assert_eq!(leads_to("own"), Path::new("../packages/own"));
        assert_eq!(leads_to("@org/ours"), Path::new("../../packages/ours"));
        assert!(!place.join(".cache").exists());
    }
}
