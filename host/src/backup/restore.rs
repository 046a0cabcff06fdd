//! Putting an archive back. Everything is unpacked beside the data directory, compared with the manifest, and the store
//! read from end to end, before the directory gets its name. Refuses what the manifest does not name, paths that lead
//! elsewhere, and more bytes than the disk has room for.

use super::{Entry, FILES_MAX, MANIFEST, Manifest, VERSION, checked};
use crate::home::Home;
use anyhow::{Context, bail};
use longhaul_core::Digest;
use longhaul_core::digest::Digester;
use longhaul_core::store::Read as Counted;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of a manifest, beside those for each file: it is held in memory, and what is short in it takes more there.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a manifest for each file that was found.
const MANIFEST_BYTES_PER_FILE: u64 = 1 << 10;

/// Bytes between the contents of two files: headers and long names, which are held in memory as a whole. A few hundred
/// bytes of an archive can become gigabytes.
const HEADERS_BYTES_MAX: u64 = 1 << 20;

/// Bytes behind the last entry: tar fills its last block up.
const REST_BYTES_MAX: u64 = 1 << 20;

/// Bytes of the disk that are left free.
const DISK_BYTES_LEFT: u64 = 64 << 20;

/// What was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    /// Where.
    pub home: PathBuf,
    /// What the archive says of itself, without its files.
    pub manifest: Manifest,
    /// Files that were put there.
    pub files: usize,
    /// What was read of the store, all of it.
    pub read: Counted,
}

/// Makes a data directory of an archive. `check` reads a store from end to end.
///
/// # Errors
/// The directory holds something, the archive is damaged or no archive of ours, or there is no room. Nothing is left then.
pub fn restore(
    file: &Path,
    home: &Home,
    check: impl FnOnce(&Path) -> anyhow::Result<Counted>,
) -> anyhow::Result<Restored> {
    refuse_full(home.path())?;
    let above = home.path().parent().with_context(|| format!("`{}` has no parent", home.path().display()))?;
    fs::create_dir_all(above).with_context(|| format!("cannot make `{}`", above.display()))?;
    let ours = fs::Permissions::from_mode(0o700);
    let staging = tempfile::Builder::new().prefix(".longhaul-restore-").permissions(ours).tempdir_in(above);
    let staging = staging.with_context(|| format!("cannot write in `{}`", above.display()))?;
    let opened = fs::File::open(file).with_context(|| format!("cannot open `{}`", file.display()))?;
    let context = || format!("`{}` cannot be restored", file.display());
    let (manifest, found) = unpack(opened, staging.path()).with_context(context)?;
    compare(&manifest, &found).with_context(context)?;
    let read = check(staging.path()).with_context(context)?;
    if read.rows < manifest.rows {
        bail!("`{}` has {} rows of {}", file.display(), read.rows, manifest.rows);
    }
    // Where there is an empty directory, it is replaced.
    fs::rename(staging.path(), home.path()).with_context(|| format!("cannot make `{}`", home.path().display()))?;
    // It has another name now.
    let _ = staging.keep();
    let files = manifest.files.len();
    Ok(Restored { home: home.path().to_owned(), manifest: Manifest { files: Vec::new(), ..manifest }, files, read })
}

fn refuse_full(home: &Path) -> anyhow::Result<()> {
    match home.read_dir().map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            bail!("the data directory `{}` is not empty; move it away, or name another with --home", home.display())
        }
        Ok(false) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", home.display())),
    }
}

/// Writes every entry below `top`; answers the manifest, and what was written.
fn unpack(archive: impl Read, top: &Path) -> anyhow::Result<(Manifest, BTreeMap<String, Entry>)> {
    let decoder = zstd::Decoder::new(archive).context("it is no backup")?;
    let left = Rc::new(Cell::new(HEADERS_BYTES_MAX));
    let mut archive = tar::Archive::new(Metered { reader: decoder, left: Rc::clone(&left) });
    let (mut found, mut manifest) = (BTreeMap::new(), None);
    let mut room = room(top)?;
    for entry in archive.entries().context("it is no backup")? {
        let mut entry = entry.context("it is damaged")?;
        left.set(entry.size().saturating_add(HEADERS_BYTES_MAX));
        if manifest.is_some() {
            bail!("something follows its manifest");
        }
        let path = entry.path().context("it is damaged")?.into_owned();
        if path == Path::new(MANIFEST) {
            manifest = Some(read_manifest(&mut entry, found.len() as u64)?);
            continue;
        }
        let Some(inside) = checked(&path) else {
            bail!("it has `{}`, which is no file of a data directory", path.display())
        };
        if found.len() >= FILES_MAX {
            bail!("it has more than {FILES_MAX} files");
        }
        let target = top.join(&inside);
        make_parents(top, &inside)?;
        let written = match entry.header().entry_type() {
            tar::EntryType::Regular => write_file(&mut entry, &target, &mut room)?,
            tar::EntryType::Symlink => write_link(&entry, &target)?,
            other => bail!("`{}` is no file ({other:?})", path.display()),
        };
        let name = inside.to_str().context("a name is no text")?.to_owned();
        found.insert(name.clone(), Entry { path: name, ..written });
    }
    left.set(u64::MAX);
    // To its end, where the checksum of all of it is.
    let rest = std::io::copy(&mut archive.into_inner().take(REST_BYTES_MAX + 1), &mut std::io::sink());
    if rest.context("it is damaged")? > REST_BYTES_MAX {
        bail!("something follows its end");
    }
    Ok((manifest.context("it has no manifest: it was cut off, or is no backup")?, found))
}

/// What may be written, in bytes.
fn room(top: &Path) -> anyhow::Result<u64> {
    let disk = rustix::fs::statvfs(top)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize).saturating_sub(DISK_BYTES_LEFT))
}

/// A reader that gives no more than it was told to.
struct Metered<R> {
    reader: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 && !buffer.is_empty() {
            return Err(std::io::Error::other(format!("names and headers of more than {HEADERS_BYTES_MAX} bytes")));
        }
        let length = self.reader.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - length as u64);
        Ok(length)
    }
}

fn read_manifest(entry: &mut impl Read, files: u64) -> anyhow::Result<Manifest> {
    #[derive(Deserialize)]
    struct Version {
        longhaul_backup: u32,
        written_by: String,
    }
    let mut text = Vec::new();
    let most = MANIFEST_BYTES_MAX + files * MANIFEST_BYTES_PER_FILE;
    entry.take(most).read_to_end(&mut text).context("it is damaged")?;
    let version: Version = serde_json::from_slice(&text).context("its manifest is damaged")?;
    if version.longhaul_backup > VERSION {
        bail!(
            "it has version {}, and this longhaul reads {VERSION}; use {}",
            version.longhaul_backup,
            version.written_by
        );
    }
    serde_json::from_slice(&text).context("its manifest is damaged")
}

/// Directories for us alone. One that is a link by now is refused: what is below it would be elsewhere.
fn make_parents(top: &Path, inside: &Path) -> anyhow::Result<()> {
    let mut path = top.to_owned();
    for part in inside.parent().into_iter().flat_map(Path::components) {
        path.push(part);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => bail!("`{}` is below something that is no directory", inside.display()),
            Err(_) => DirBuilder::new().mode(0o700).create(&path)?,
        }
    }
    Ok(())
}

fn write_file(entry: &mut tar::Entry<'_, impl Read>, target: &Path, room: &mut u64) -> anyhow::Result<Entry> {
    let mode = 0o600 | (entry.header().mode().unwrap_or(0) & 0o100);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(target)?;
    let (mut digester, mut bytes, mut buffer) = (Digester::default(), 0_u64, vec![0; 256 << 10]);
    loop {
        let length = entry.read(&mut buffer).context("it is damaged")?;
        if length == 0 {
            break;
        }
        let Some(left) = room.checked_sub(length as u64) else {
            bail!("there is no room for it on this disk; free some, or name another place with --home")
        };
        *room = left;
        bytes += length as u64;
        digester.update(&buffer[..length]);
        file.write_all(&buffer[..length])?;
    }
    file.sync_all()?;
    Ok(Entry { path: String::new(), bytes, sha256: digester.finish(), link: None })
}

fn write_link(entry: &tar::Entry<'_, impl Read>, target: &Path) -> anyhow::Result<Entry> {
    let link = entry.link_name().context("it is damaged")?.context("a link leads nowhere")?.into_owned();
    let text = link.to_str().context("a link leads to a name that is no text")?.to_owned();
    std::os::unix::fs::symlink(&link, target)?;
    Ok(Entry { path: String::new(), bytes: 0, sha256: Digest::of(text.as_bytes()), link: Some(text) })
}

fn compare(manifest: &Manifest, found: &BTreeMap<String, Entry>) -> anyhow::Result<()> {
    for entry in &manifest.files {
        match found.get(&entry.path) {
            Some(there) if there == entry => {}
            Some(_) => bail!("`{}` is not what was written: it is damaged, or was changed", entry.path),
            None => bail!("`{}` is missing", entry.path),
        }
    }
    if manifest.files.len() != found.len() {
        bail!("it has {} files, and its manifest names {}", found.len(), manifest.files.len());
    }
    Ok(())
}
