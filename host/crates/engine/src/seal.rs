//! Authenticity of compiled code: each file has a seal beside it, made with a key of the cache directory.
//!
//! Loading compiled code is running it, and a cache easily comes from elsewhere: from an archive, a build server, or a
//! shared directory. So a file is valid only with the seal that this directory's key gives its name and bytes. Reading
//! all bytes takes longer than the rest of a start; so the seal also holds the system's metadata of the file when its
//! bytes were verified (see `file_cache.rs`), and they are read again once that differs. It refuses to keep the key
//! anywhere else, and does not protect against a user who can read it.

use crate::file_cache::{self, FileStamp};
use crate::unfinished;
use ring::hmac::{self, Key, Tag};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The file of the key.
const KEY_FILE: &str = "key";

/// Bytes of the key: as many as a tag of SHA-256 has.
const KEY_BYTES: usize = 32;

/// Most bytes of a seal; one has some 300.
const SEAL_BYTES_MAX: u64 = 4_096;

/// Bytes that one read returns.
const PIECE_BYTES: usize = 256 << 10;

/// The key of a cache directory, and the files verified with it.
pub(crate) struct Sealer {
    key: Key,
    /// Files that this process verified, with their stamps.
    found_right: Mutex<HashMap<PathBuf, FileStamp>>,
}

/// The seal beside a compiled file.
#[derive(Serialize, Deserialize)]
struct Seal {
    /// The tag of the file's name and bytes, in hexadecimal digits.
    content: String,
    /// The stamp when the bytes were verified; none: the file had not rested by then.
    stamp: Option<FileStamp>,
    /// The tag of all the above, in hexadecimal digits.
    tag: String,
}

/// A file was not compiled here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsealed {
    #[error("it has no seal of this cache")]
    NoSeal,
    #[error("it is not what was compiled here")]
    Changed,
    #[error("{0}")]
    Unreadable(#[from] io::Error),
}

impl Sealer {
    /// Opens the key of a private directory, made now if there is none.
    ///
    /// # Errors
    /// The fault of the key's file, and its remedy.
    pub(crate) fn open(directory: &Path) -> Result<Self, String> {
        let path = directory.join(KEY_FILE);
        if !path.exists() {
            make_key(directory, &path).map_err(|error| format!("its key cannot be made: {error}"))?;
        }
        let bytes = read_key(&path).map_err(|error| format!("its key `{}`: {error}; remove it", path.display()))?;
        Ok(Self { key: Key::new(hmac::HMAC_SHA256, &bytes), found_right: Mutex::default() })
    }

    /// Seals a file that was just compiled, before it gets its name `path`.
    pub(crate) fn seal(&self, path: &Path, compiled: &File) -> io::Result<()> {
        let content = self.content(path, compiled)?;
        self.write(path, &hex(content.as_ref()), None)
    }

    /// Refuses a file that was not sealed with this key.
    pub(crate) fn check(&self, path: &Path) -> Result<(), Unsealed> {
        let (stamp, looked_at) = (FileStamp::of(path), file_cache::now());
        let is_known = |stamp: &FileStamp| self.found_right().get(path) == Some(stamp);
        if stamp.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let seal = self.read(path)?;
        if stamp.is_none() || stamp != seal.stamp {
            let content = self.content(path, &File::open(path)?)?;
            if !is_equal(&hex(content.as_ref()), &seal.content) {
                return Err(Unsealed::Changed);
            }
        }
        let Some(stamp) = stamp.filter(|before| FileStamp::of(path).as_ref() == Some(before)) else { return Ok(()) };
        if seal.stamp.as_ref() != Some(&stamp) && stamp.has_rested(looked_at) {
            // A stamp that cannot be stored is left out: the bytes are read again next time.
            let _ = self.write(path, &seal.content, Some(stamp.clone()));
        }
        self.found_right().insert(path.to_owned(), stamp);
        Ok(())
    }

    /// Drops the seal of a file.
    pub(crate) fn forget(&self, path: &Path) {
        self.found_right().remove(path);
        let _ = fs::remove_file(seal_of(path));
    }

    fn read(&self, path: &Path) -> Result<Seal, Unsealed> {
        let mut bytes = Vec::new();
        let file = File::open(seal_of(path)).map_err(|_| Unsealed::NoSeal)?;
        file.take(SEAL_BYTES_MAX).read_to_end(&mut bytes)?;
        let seal: Seal = serde_json::from_slice(&bytes).map_err(|_| Unsealed::NoSeal)?;
        let tag = self.tag(path, &seal.content, seal.stamp.as_ref())?;
        if is_equal(&hex(tag.as_ref()), &seal.tag) { Ok(seal) } else { Err(Unsealed::NoSeal) }
    }

    /// Replaces by renaming: a concurrent reader sees all of the old or all of the new file.
    fn write(&self, path: &Path, content: &str, stamp: Option<FileStamp>) -> io::Result<()> {
        let tag = hex(self.tag(path, content, stamp.as_ref())?.as_ref());
        let seal = Seal { content: content.to_owned(), stamp, tag };
        let place = seal_of(path);
        let directory = place.parent().ok_or_else(|| io::Error::other("it lies nowhere"))?;
        let mut unfinished = unfinished::create_in(directory)?;
        unfinished.write_all(&serde_json::to_vec(&seal)?)?;
        unfinished.persist(&place)?;
        Ok(())
    }

    /// The tag of a file's name and bytes: code of another component is refused under this name.
    fn content(&self, path: &Path, mut file: &File) -> io::Result<Tag> {
        let mut context = self.begin("content", path);
        file.rewind()?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut piece)? {
                0 => return Ok(context.sign()),
                read => context.update(&piece[..read]),
            }
        }
    }

    fn tag(&self, path: &Path, content: &str, stamp: Option<&FileStamp>) -> io::Result<Tag> {
        let mut context = self.begin("seal", path);
        context.update(&serde_json::to_vec(&(content, stamp))?);
        Ok(context.sign())
    }

    /// Begins a tag with its purpose, so that none is valid for anything else. No name has a zero byte.
    fn begin(&self, of: &str, path: &Path) -> hmac::Context {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(format!("longhaul compiled code 1\0{of}\0").as_bytes());
        context.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        context.update(b"\0");
        context
    }

    fn found_right(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, FileStamp>> {
        self.found_right.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seal_of(path: &Path) -> PathBuf {
    path.with_extension("seal")
}

/// If two processes make one at the same time, the first one's counts.
fn make_key(directory: &Path, path: &Path) -> io::Result<()> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes)?;
    let mut unfinished = unfinished::create_in(directory)?;
    unfinished.write_all(&bytes)?;
    unfinished.as_file().sync_all()?;
    match unfinished.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

fn read_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    let is_ours = found.is_file() && found.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || found.mode() & 0o077 != 0 || found.len() != KEY_BYTES as u64 {
        return Err(io::Error::other("it is not a file of 32 bytes that we alone can read"));
    }
    let mut bytes = [0; KEY_BYTES];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares in constant time.
fn is_equal(one: &str, other: &str) -> bool {
    use subtle::ConstantTimeEq as _;
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
