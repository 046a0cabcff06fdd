//! The files of a run's trees, in their form in a snapshot.
//!
//! A snapshot holds regular files alone: a link is left out and listed, and so is a repository within the tree. Files
//! of a snapshot are written below the tree and nowhere else, whatever their paths say.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_core::fault::{self, Context, bail};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

/// Bytes of all files of a run's trees.
const FILES_BYTES_MAX: u64 = 64 << 20;

/// Files of a run's trees.
const FILES_MAX: usize = 20_000;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotFile {
    /// The number of the tree.
    pub tree: u32,
    /// The path within the tree, its parts separated by `/`.
    pub path: String,
    /// True when it may be executed.
    pub executable: bool,
    /// Its content, base64.
    pub content: String,
}

/// Every file below a directory, in order; paths that were left out are added to `left_out`.
pub(super) fn read(tree: u32, root: &Path, left_out: &mut Vec<String>) -> fault::Result<Vec<SnapshotFile>> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read `{}`", folder.display()))? {
            let entry = entry?;
            let (path, is_git) = (entry.path(), entry.file_name() == ".git");
            let found = fs::symlink_metadata(&path)?;
            let inside = path.strip_prefix(root).unwrap_or(&path);
            let name = inside.to_str().map(str::to_owned);
            match name {
                // `write` would refuse the whole snapshot for one repository that an agent made in its tree.
                _ if is_git => left_out.push(inside.to_string_lossy().into_owned()),
                _ if found.is_dir() => folders.push(path),
                Some(name) if found.is_file() => {
                    bytes += found.len();
                    if bytes > FILES_BYTES_MAX || files.len() >= FILES_MAX {
                        bail!(
                            "the tree of the run has more than {FILES_BYTES_MAX} bytes or {FILES_MAX} files; \
                             let it come to a commit, and move the branch instead"
                        );
                    }
                    let executable = found.permissions().mode() & 0o100 != 0;
                    files.push(SnapshotFile { tree, path: name, executable, content: BASE64.encode(fs::read(&path)?) });
                }
                _ => left_out.push(inside.to_string_lossy().into_owned()),
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Makes a tree of files, in place of what is there; it appears whole or not at all.
pub(super) fn write(root: &Path, files: &[&SnapshotFile]) -> fault::Result<()> {
    let half = root.with_extension("import");
    if half.exists() {
        fs::remove_dir_all(&half)?;
    }
    fs::create_dir_all(&half)?;
    for file in files {
        let path = half.join(plain(&file.path)?);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let content = BASE64.decode(&file.content).or_invalid(|| format!("the content of `{}`", file.path))?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        let opened = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        opened.with_context(|| format!("cannot write `{}`", path.display()))?.write_all(&content)?;
    }
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    fs::rename(&half, root).with_context(|| format!("cannot make `{}`", root.display()))
}

/// Checks that a path stays below its directory.
pub(super) fn plain(path: &str) -> fault::Result<PathBuf> {
    let parts = Path::new(path).components();
    let is_plain = !path.is_empty()
        && !path.contains('\0')
        && parts.clone().all(|part| matches!(part, Component::Normal(name) if name != ".git"));
    if !is_plain {
        bail!(
            "the checkpoint has a file `{}`, which would not be in the tree; it is not imported; have the run exported \
             again with `longhaul checkpoint export`",
            longhaul_core::text::printable(path, 200)
        );
    }
    Ok(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_was_read_and_stays_in_its_tree() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("a/b")).expect("ours");
        fs::write(from.join("a/b/c.txt"), [0, 255]).expect("ours");
        fs::write(from.join("run.sh"), "x").expect("ours");
        fs::set_permissions(from.join("run.sh"), fs::Permissions::from_mode(0o755)).expect("ours");
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).expect("ours");
        fs::create_dir_all(from.join("a/.git")).expect("ours");
        fs::write(from.join("a/.git/config"), "x").expect("ours");
        let mut left_out = Vec::new();
        let files = read(0, &from, &mut left_out).expect("read");
        left_out.sort();
        assert_eq!(left_out, ["a/.git", "link"]);
        write(&to, &files.iter().collect::<Vec<_>>()).expect("written");
        assert_eq!(read(0, &to, &mut Vec::new()).expect("read"), files);
        for path in ["../x", "/x", "a/../../x", "", ".", ".git/config", "a/.git/hooks/x", "x\0y"] {
            let file = SnapshotFile { path: path.into(), ..files[0].clone() };
            assert!(write(&folder.path().join("bad"), &[&file]).is_err(), "{path}");
        }
        assert!(!folder.path().join("bad").exists() && !folder.path().join("x").exists());
    }
}
