//! Restores an archive. Everything is unpacked beside the data directory, compared with the manifest, and the store
//! read from end to end, before the directory gets its name. Refuses entries that the manifest does not name, paths
//! that lead outside, and more bytes than the disk has room for.

use super::{ArchiveEntry, FILES_MAX, MANIFEST, SIGNATURE, VERSION, checked, may_be_link};
use longhaul_api::upkeep::{AuditHead, BackupManifest, RestoreOptions, RestoreReport};
use longhaul_core::Digest;
use longhaul_core::digest::Digester;
use longhaul_core::fault::{self, Context, bail};
use longhaul_core::store::ReadTotals as Counted;
use longhaul_home::Home;
use longhaul_security::audit::AuditVerification;
use longhaul_security::signing::{self, AcceptedRisks, Signed, Signer};
use serde::Deserialize;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::rc::Rc;

/// Bytes of a manifest, beside those for each file: it is held in memory, where short entries take more.
const MANIFEST_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a manifest for each file that was found.
const MANIFEST_BYTES_PER_FILE: u64 = 1 << 10;

/// Bytes between the contents of two files: headers and long names, which are held in memory as a whole. A few hundred
/// bytes of an archive can become gigabytes.
const HEADERS_BYTES_MAX: u64 = 1 << 20;

/// Bytes of a signature.
const SIGNATURE_BYTES_MAX: u64 = 4 << 10;

/// The settings of the server, which name notification commands and API access.
const SERVER: &str = "server.toml";

/// Bytes behind the last entry: tar fills its last block up.
const REST_BYTES_MAX: u64 = 1 << 20;

/// Bytes of the disk that are left free.
const DISK_BYTES_LEFT: u64 = 64 << 20;

/// A store that was read, and cleared of the parts that act by themselves.
#[derive(Clone, Debug, Default)]
pub struct PreparedStore {
    /// The rows that were read, before anything was removed.
    pub read: Counted,
    /// The powers that its projects request.
    pub powers: Vec<String>,
    /// The removed parts.
    pub dropped: Vec<String>,
    /// The verification of its audit log, before anything was added.
    pub audit: Option<AuditVerification>,
}

/// Makes a data directory of an archive. `prepare` reads a store from end to end, looks for a record of its audit log,
/// and removes the parts that are not kept.
///
/// # Errors
/// The directory holds something, the archive is damaged or of another program, its signer was not named, its audit log
/// is another one, or there is no space. Nothing is left then.
pub fn restore(
    file: &Path,
    home: &Home,
    accepts: &AcceptedRisks,
    keeps: RestoreOptions,
    prepare: impl FnOnce(&Path, RestoreOptions, &Signer, Option<Digest>) -> fault::Result<PreparedStore>,
) -> fault::Result<RestoreReport> {
    refuse_full(home.path())?;
    let above = home.path().parent().with_context(|| format!("`{}` has no parent", home.path().display()))?;
    fs::create_dir_all(above).with_context(|| format!("cannot make `{}`", above.display()))?;
    let ours = fs::Permissions::from_mode(0o700);
    let staging = tempfile::Builder::new().prefix(".longhaul-restore-").permissions(ours).tempdir_in(above);
    let staging = staging.with_context(|| format!("cannot write in `{}`", above.display()))?;
    let opened = fs::File::open(file).with_context(|| format!("cannot open `{}`", file.display()))?;
    let context = || format!("`{}` cannot be restored", file.display());
    let Unpacked { manifest, files, text, signature, found } = unpack(opened, staging.path()).with_context(context)?;
    compare(manifest.longhaul_backup, &files, &found).with_context(context)?;
    let signed = signed(&manifest, signature).with_context(context)?;
    let signer = signing::admit(home, "the backup", signed.as_ref(), &text, accepts).with_context(context)?;
    let expect = manifest.audit.as_ref().and_then(AuditHead::expected);
    let prepared = prepare(staging.path(), keeps, &signer, expect).with_context(context)?;
    let PreparedStore { read, powers, mut dropped, audit } = prepared;
    refuse_other_log(&manifest, audit.as_ref()).with_context(context)?;
    dropped.extend(set_server_aside(staging.path(), keeps)?);
    if read.rows < manifest.rows {
        bail!("`{}` has {} rows of {}", file.display(), read.rows, manifest.rows);
    }
    // The rename replaces an empty directory.
    fs::rename(staging.path(), home.path()).with_context(|| format!("cannot make `{}`", home.path().display()))?;
    // It has another name now.
    let _ = staging.keep();
    signing::remember(home, &signer)?;
    let (home, files) = (home.path().to_owned(), files.len());
    Ok(RestoreReport { home, manifest, files, read, signer, powers, dropped })
}

/// The signature of a manifest. A manifest that names no key is unsigned, whatever follows it.
fn signed(manifest: &BackupManifest, signature: Option<String>) -> fault::Result<Option<Signed>> {
    match (&manifest.signer, signature) {
        (Some(signer), Some(signature)) => Ok(Some(Signed { signer: signer.clone(), signature })),
        (Some(_), None) => bail!("it has no signature: it was cut off, or was changed"),
        (None, Some(_)) => bail!("it has a signature without a signer: it was changed"),
        (None, None) => Ok(None),
    }
}

/// Refuses an audit log that does not continue from its head at the time of the backup. A log that was broken by then
/// is restored as it was.
fn refuse_other_log(manifest: &BackupManifest, audit: Option<&AuditVerification>) -> fault::Result<()> {
    let (Some(head), Some(found)) = (&manifest.audit, audit) else { return Ok(()) };
    let is_whole = head.is_broken || found.broken.is_none();
    if is_whole && found.has_expected != Some(false) {
        return Ok(());
    }
    let how = match &found.broken {
        Some((number, how)) => format!("it breaks at record {number}: {how}"),
        None => format!("none of its {} records has that digest", found.records),
    };
    bail!(
        "its audit log is not the one that was backed up, whose record {} has the digest {}: {how}; take the backup again \
         from where it was made",
        head.records,
        head.last
    )
}

/// Gives `server.toml` a name that nothing reads.
fn set_server_aside(top: &Path, keeps: RestoreOptions) -> fault::Result<Option<String>> {
    let (from, to) = (top.join(SERVER), top.join("server.toml.restored"));
    if keeps.commands || fs::symlink_metadata(&from).is_err() {
        return Ok(None);
    }
    fs::rename(from, to)?;
    Ok(Some(
        "server.toml, with the programs that it names, is there as server.toml.restored and is not used; \
         --with-commands keeps it"
            .to_owned(),
    ))
}

fn refuse_full(home: &Path) -> fault::Result<()> {
    match home.read_dir().map(|mut entries| entries.next().is_some()) {
        Ok(true) => {
            bail!("the data directory `{}` is not empty; move it away, or name another with --home", home.display())
        }
        Ok(false) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", home.display())),
    }
}

/// The entries of an archive, unpacked below a directory.
struct Unpacked {
    manifest: BackupManifest,
    /// The files that the manifest names.
    files: Vec<ArchiveEntry>,
    /// The manifest's signed bytes.
    text: Vec<u8>,
    signature: Option<String>,
    found: BTreeMap<String, ArchiveEntry>,
}

/// Writes every entry below `top`.
fn unpack(archive: impl Read, top: &Path) -> fault::Result<Unpacked> {
    let decoder = zstd::Decoder::new(archive).context("it is no backup")?;
    let left = Rc::new(Cell::new(HEADERS_BYTES_MAX));
    let mut archive = tar::Archive::new(LimitedReader { reader: decoder, left: Rc::clone(&left) });
    let (mut found, mut manifest, mut signature) = (BTreeMap::new(), None, None);
    let mut room = room(top)?;
    for entry in archive.entries().context("it is no backup")? {
        let mut entry = entry.context("it is damaged")?;
        left.set(entry.size().saturating_add(HEADERS_BYTES_MAX));
        let path = entry.path().context("it is damaged")?.into_owned();
        if manifest.is_some() && signature.is_none() && path == Path::new(SIGNATURE) {
            let mut text = String::new();
            entry.take(SIGNATURE_BYTES_MAX).read_to_string(&mut text).context("its signature is damaged")?;
            signature = Some(text);
            continue;
        }
        if manifest.is_some() {
            bail!("something follows its manifest");
        }
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
            tar::EntryType::Symlink if may_be_link(&inside) => write_link(&entry, &target)?,
            tar::EntryType::Symlink => {
                bail!("`{}` is a link, which only trees of runs have: it was not written by longhaul", path.display())
            }
            other => bail!("`{}` is no file ({other:?})", path.display()),
        };
        let name = inside.to_str().context("a name is no text")?.to_owned();
        found.insert(name.clone(), ArchiveEntry { path: name, ..written });
    }
    left.set(u64::MAX);
    // Read to its end, where the checksum of the archive is.
    let rest = std::io::copy(&mut archive.into_inner().take(REST_BYTES_MAX + 1), &mut std::io::sink());
    if rest.context("it is damaged")? > REST_BYTES_MAX {
        bail!("something follows its end");
    }
    let ManifestEntry { manifest, files, text } =
        manifest.context("it has no manifest: it was cut off, or is no backup")?;
    Ok(Unpacked { manifest, files, text, signature, found })
}

/// Bytes that may be written.
fn room(top: &Path) -> fault::Result<u64> {
    let disk = rustix::fs::statvfs(top)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize).saturating_sub(DISK_BYTES_LEFT))
}

/// A reader with a limit.
struct LimitedReader<R> {
    reader: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for LimitedReader<R> {
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

/// The manifest's entry.
struct ManifestEntry {
    manifest: BackupManifest,
    files: Vec<ArchiveEntry>,
    text: Vec<u8>,
}

fn read_manifest(entry: &mut impl Read, files: u64) -> fault::Result<ManifestEntry> {
    #[derive(Deserialize)]
    struct Version {
        longhaul_backup: u32,
        written_by: String,
    }
    #[derive(Deserialize)]
    struct Files {
        files: Vec<ArchiveEntry>,
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
    // Read twice: one type with a flattened field would hold the manifest's unknown fields in memory.
    let manifest = serde_json::from_slice(&text).context("its manifest is damaged")?;
    let Files { files } = serde_json::from_slice(&text).context("its manifest is damaged")?;
    Ok(ManifestEntry { manifest, files, text })
}

/// Makes directories with mode 0700. A directory that has become a link is refused: files below it would be elsewhere.
fn make_parents(top: &Path, inside: &Path) -> fault::Result<()> {
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

fn write_file(entry: &mut tar::Entry<'_, impl Read>, target: &Path, room: &mut u64) -> fault::Result<ArchiveEntry> {
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
    let executable = mode & 0o100 != 0;
    Ok(ArchiveEntry { path: String::new(), bytes, sha256: digester.finish(), link: None, executable })
}

fn write_link(entry: &tar::Entry<'_, impl Read>, target: &Path) -> fault::Result<ArchiveEntry> {
    let link = entry.link_name().context("it is damaged")?.context("a link leads nowhere")?.into_owned();
    let text = link.to_str().context("a link leads to a name that is no text")?.to_owned();
    std::os::unix::fs::symlink(&link, target)?;
    Ok(ArchiveEntry {
        path: String::new(),
        bytes: 0,
        sha256: Digest::of(text.as_bytes()),
        link: Some(text),
        executable: false,
    })
}

fn compare(version: u32, files: &[ArchiveEntry], found: &BTreeMap<String, ArchiveEntry>) -> fault::Result<()> {
    for entry in files {
        match found.get(&entry.path) {
            Some(there) if there == entry => {}
            // The first version recorded no modes.
            Some(there) if version < 2 && ArchiveEntry { executable: there.executable, ..entry.clone() } == *there => {}
            Some(_) => bail!("`{}` is not what was written: it is damaged, or was changed", entry.path),
            None => bail!("`{}` is missing", entry.path),
        }
    }
    if files.len() != found.len() {
        bail!("it has {} files, and its manifest names {}", found.len(), files.len());
    }
    Ok(())
}
