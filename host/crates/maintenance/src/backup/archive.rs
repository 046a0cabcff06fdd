//! Writing an archive. Refuses to write over a file, and to follow a link.

use super::{ArchiveEntry, FILE_BYTES_MAX, FILES_MAX, MANIFEST, SIGNATURE, STATE, VERSION, may_be_link};
use longhaul_api::upkeep::{AuditHead, BackupManifest, WrittenArchive};
use longhaul_core::fault::{self, Context, bail};
use longhaul_core::store::Store;
use longhaul_core::{Digest, RunId};
use longhaul_home::Home;
use longhaul_security::signing::SigningKey;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// zstd's default.
const LEVEL: i32 = 3;

/// The parts of an archive.
pub struct ArchiveParts<'a> {
    /// The data directory.
    pub home: &'a Home,
    /// Its store.
    pub store: &'a dyn Store,
    /// The active runs.
    pub active: Vec<RunId>,
    /// True when the archive includes secrets.
    pub with_secrets: bool,
    /// The head of the audit log.
    pub audit: AuditHead,
    /// The current time, in milliseconds since 1970-01-01 UTC.
    pub now_ms: u64,
}

/// Writes a data directory into a new file, mode 0600.
///
/// # Errors
/// The file exists, or something cannot be read or written. Then no file is left under that name.
pub fn write(file: &Path, parts: &ArchiveParts<'_>) -> fault::Result<WrittenArchive> {
    if fs::symlink_metadata(file).is_ok() {
        bail!("`{}` is there already; choose another name", file.display());
    }
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let ours = fs::Permissions::from_mode(0o700);
    let scratch = tempfile::Builder::new().prefix(".longhaul-backup-").permissions(ours).tempdir_in(directory);
    let scratch = scratch.or_invalid(|| format!("cannot write in `{}`", directory.display()))?;
    let state = scratch.path().join(STATE);
    let rows = parts.store.copy_to(&state).context("the store cannot be copied")?.rows;
    let archive = scratch.path().join("archive");
    let output = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&archive)?;
    let mut writer = Writer::new(output)?;
    writer.add_file(Path::new(STATE), &state, u64::MAX)?;
    let left_out = writer.add_home(parts)?;
    let key = SigningKey::of(parts.home)?;
    let signer = key.public();
    let manifest = BackupManifest {
        longhaul_backup: VERSION,
        written_by: concat!("longhaul ", env!("CARGO_PKG_VERSION")).to_owned(),
        taken_ms: parts.now_ms,
        rows,
        has_secrets: parts.with_secrets,
        left_out,
        audit: Some(parts.audit),
        signer: Some(signer.clone()),
    };
    let text = serde_json::to_vec_pretty(&ManifestDocument { manifest: &manifest, files: &writer.files })?;
    append(&mut writer.tar, Path::new(MANIFEST), &text, 0o600)?;
    let signed = key.sign(&text, "longhaul backup");
    append(&mut writer.tar, Path::new(SIGNATURE), signed.signature.as_bytes(), 0o600)?;
    let output = writer.tar.into_inner()?.finish()?;
    output.sync_all()?;
    let bytes = output.metadata()?.len();
    // A link and not a rename, so that a file that appeared meanwhile is not overwritten.
    fs::hard_link(&archive, file)
        .or_else(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Err(error),
            // Not every file system has links.
            _ => fs::rename(&archive, file),
        })
        .or_invalid(|| format!("cannot make `{}`", file.display()))?;
    File::open(directory)?.sync_all()?;
    let (file, files, audit) = (file.to_owned(), writer.files.len(), parts.audit);
    let (has_secrets, left_out) = (parts.with_secrets, manifest.left_out);
    Ok(WrittenArchive { file, bytes, files, rows, has_secrets, left_out, signer, audit })
}

/// The content of the manifest's entry.
#[derive(Serialize)]
struct ManifestDocument<'a> {
    #[serde(flatten)]
    manifest: &'a BackupManifest,
    /// All other entries, without the signature.
    files: &'a [ArchiveEntry],
}

struct Writer {
    tar: tar::Builder<zstd::Encoder<'static, File>>,
    files: Vec<ArchiveEntry>,
}

impl Writer {
    fn new(output: File) -> fault::Result<Self> {
        let mut encoder = zstd::Encoder::new(output, LEVEL)?;
        // The manifest does not cover itself.
        encoder.include_checksum(true)?;
        Ok(Self { tar: tar::Builder::new(encoder), files: Vec::new() })
    }

    /// Adds the data directory; returns the parts that were left out.
    fn add_home(&mut self, parts: &ArchiveParts<'_>) -> fault::Result<Vec<String>> {
        let home = parts.home.path();
        let mut left_out = Vec::new();
        self.add(home, Path::new("server.toml"), &mut left_out)?;
        self.add(home, Path::new(longhaul_config::resources::FILE), &mut left_out)?;
        self.add(home, Path::new("plugins"), &mut left_out)?;
        if parts.with_secrets {
            self.add(home, Path::new("secrets"), &mut left_out)?;
        }
        for entry in home.join("trees").read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let inside = Path::new("trees").join(&name);
            // The trees of a run's other sessions bear its name and a number.
            let is_active = parts.active.iter().any(|run| name.split('.').next() == Some(run.as_str()));
            if is_active {
                left_out.push(format!("{}: the run is worked on; pause it to have its tree too", inside.display()));
            } else {
                self.add(home, &inside, &mut left_out)?;
            }
        }
        Ok(left_out)
    }

    /// Adds the entry at a path: a file, a link, or all below a directory. A missing path adds nothing.
    fn add(&mut self, home: &Path, inside: &Path, left_out: &mut Vec<String>) -> fault::Result<()> {
        let path = home.join(inside);
        // A link of the operator's, such as a `server.toml` that is kept elsewhere, is replaced by its target.
        let look = if may_be_link(inside) { fs::symlink_metadata } else { fs::metadata };
        let found = match look(&path) {
            Ok(found) => found,
            // The path disappeared since the directory was read, or never existed.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        };
        if found.is_dir() {
            let mut names: Vec<_> = path.read_dir()?.collect::<Result<Vec<_>, _>>()?;
            names.sort_by_key(fs::DirEntry::file_name);
            for entry in names {
                self.add(home, &inside.join(entry.file_name()), left_out)?;
            }
            return Ok(());
        }
        if inside.to_str().is_none() {
            left_out.push(format!("{}: its name is no text", inside.display()));
        } else if found.is_symlink() {
            self.add_link(inside, &path)?;
        } else if found.is_file() {
            self.add_file(inside, &path, FILE_BYTES_MAX)?;
        } else {
            left_out.push(format!("{}: it is no file", inside.display()));
        }
        Ok(())
    }

    fn add_link(&mut self, inside: &Path, path: &Path) -> fault::Result<()> {
        let target = fs::read_link(path)?;
        let Some(text) = target.to_str() else { bail!("`{}` leads to a name that is no text", path.display()) };
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        self.tar.append_link(&mut header, inside, &target)?;
        let (sha256, link) = (Digest::of(text.as_bytes()), Some(text.to_owned()));
        self.note(ArchiveEntry { path: inside.display().to_string(), bytes: 0, sha256, link, executable: false })
    }

    fn add_file(&mut self, inside: &Path, path: &Path, bytes_max: u64) -> fault::Result<()> {
        let context = || format!("cannot read `{}`", path.display());
        let file = File::open(path).with_context(context)?;
        let found = file.metadata().with_context(context)?;
        let bytes = found.len();
        if bytes > bytes_max {
            bail!("`{}` has {bytes} bytes, more than {bytes_max}; remove it or make it shorter", path.display());
        }
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes);
        header.set_mode(found.permissions().mode() & 0o700);
        // A file that grows is cut, and one that shrinks is an error: it was changed while it was read.
        let mut reading = Digesting { reader: file.take(bytes), digester: longhaul_core::digest::Digester::default() };
        self.tar.append_data(&mut header, inside, &mut reading).with_context(context)?;
        let sha256 = reading.digester.finish();
        let executable = found.permissions().mode() & 0o100 != 0;
        self.note(ArchiveEntry { path: inside.display().to_string(), bytes, sha256, link: None, executable })
    }

    fn note(&mut self, entry: ArchiveEntry) -> fault::Result<()> {
        if self.files.len() >= FILES_MAX {
            bail!(
                "there are more than {FILES_MAX} files; remove trees with `longhaul gc`, or pack them by other means"
            );
        }
        self.files.push(entry);
        Ok(())
    }
}

struct Digesting<R> {
    reader: R,
    digester: longhaul_core::digest::Digester,
}

impl<R: std::io::Read> std::io::Read for Digesting<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.reader.read(buffer)?;
        self.digester.update(&buffer[..length]);
        Ok(length)
    }
}

fn append<W: Write>(tar: &mut tar::Builder<W>, path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(mode);
    tar.append_data(&mut header, path, bytes)
}
