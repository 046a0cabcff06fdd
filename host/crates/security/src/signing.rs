//! Signatures of exported data, which is checkpoints and backups: ed25519 in minisign's format.
//!
//! | file of the data directory | holds |
//! |---|---|
//! | `signing.key` | the seed of its own key and the number of the key, base64, mode 0600; made at first use |
//! | `signers` | public keys of others that were accepted by name, one a line |
//!
//! Public keys and signatures are those of minisign, so `minisign -Vm manifest.json -P KEY` checks an unpacked backup.
//! They use its algorithm `Ed`, which signs the bytes themselves: they are in memory anyway. A signer is named by the
//! whole public key: the author of a key chooses minisign's short number, so two keys can share one. A signature
//! identifies the author, and never says that the data is harmless. Refuses to accept a key that no person named.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_core::fault::{self, Context, bail};
use longhaul_home::Home;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The data directory's own key.
pub const KEY_FILE: &str = "signing.key";

/// The accepted keys of others.
pub const SIGNERS_FILE: &str = "signers";

/// Bytes of a signature's four lines; minisign's are some 300.
const SIGNATURE_BYTES_MAX: usize = 1_024;

/// minisign's name of plain ed25519.
const ALGORITHM: &[u8; 2] = b"Ed";

/// Bytes of a key's number, of a public key, and of a signature.
const NUMBER: usize = 8;
const PUBLIC: usize = 32;
const SIGNATURE: usize = 64;

/// The prefixes of the two comments of a signature.
const UNTRUSTED: &str = "untrusted comment: ";
const TRUSTED: &str = "trusted comment: ";

/// A signature with the public key of its signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// minisign's public key, base64.
    pub signer: String,
    /// minisign's four lines.
    pub signature: String,
}

/// The risks of foreign data that a person accepts explicitly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRisks {
    /// Accepts data without a signature.
    #[serde(default)]
    pub unsigned: bool,
    /// Accepts this signer, who is known from then on.
    #[serde(default)]
    pub signer: Option<String>,
}

/// The signer of some data. `--json` prints it as it is: its fields are published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "signed")]
pub enum Signer {
    /// The data is unsigned.
    Nobody,
    /// This data directory.
    Own {
        /// Its public key.
        key: String,
    },
    /// A signer who was accepted before.
    Known {
        /// The public key of the signer.
        key: String,
    },
    /// An unknown signer.
    Unknown {
        /// The public key of the signer.
        key: String,
    },
}

impl std::fmt::Display for Signer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nobody => write!(formatter, "unsigned"),
            Self::Own { key } => write!(formatter, "signed here, by {key}"),
            Self::Known { key } => write!(formatter, "signed by {key}, which is known here"),
            Self::Unknown { key } => write!(formatter, "signed by {key}, which is unknown here"),
        }
    }
}

/// The key of a data directory.
pub struct SigningKey {
    number: [u8; NUMBER],
    pair: Ed25519KeyPair,
}

impl SigningKey {
    /// The key of a data directory, made if there is none.
    pub fn of(home: &Home) -> fault::Result<Self> {
        let path = home.path().join(KEY_FILE);
        let known = Self::read(&path)?;
        known.map_or_else(|| Self::make(home, &path), Ok)
    }

    fn read(path: &Path) -> fault::Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read `{}`", path.display()))?,
        };
        if fs::metadata(path)?.mode() & 0o077 != 0 {
            bail!("others can read the key `{0}`; run: chmod 600 {0}", path.display());
        }
        let key = BASE64.decode(text.trim()).ok().and_then(|bytes| Self::of_bytes(&bytes));
        let damaged = || format!("the key `{}` is damaged; move it away, and a new one is made", path.display());
        key.or_internal(damaged).map(Some)
    }

    /// The key with a number and a seed.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (number, seed) = bytes.split_first_chunk::<NUMBER>()?;
        Some(Self { number: *number, pair: Ed25519KeyPair::from_seed_unchecked(seed).ok()? })
    }

    /// Another process may make one at the same time; the first complete one stays.
    fn make(home: &Home, path: &Path) -> fault::Result<Self> {
        home.make()?;
        let mut bytes = [0; NUMBER + PUBLIC];
        SystemRandom::new().fill(&mut bytes).ok().context("the system gives no randomness")?;
        let key = Self::of_bytes(&bytes).context("a key cannot be made")?;
        let mut file = tempfile::NamedTempFile::new_in(home.path())?;
        writeln!(file, "{}", BASE64.encode(bytes))?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(path) {
            Ok(_) => {
                File::open(home.path())?.sync_all()?;
                Ok(key)
            }
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                Self::read(path)?.with_context(|| format!("`{}` is gone again", path.display()))
            }
            Err(error) => Err(error.error).with_context(|| format!("cannot make the key `{}`", path.display())),
        }
    }

    /// Its public key, as minisign writes it.
    pub fn public(&self) -> String {
        BASE64.encode([&ALGORITHM[..], &self.number, self.pair.public_key().as_ref()].concat())
    }

    /// Signs bytes; the comment is signed too.
    pub fn sign(&self, bytes: &[u8], comment: &str) -> Signed {
        let comment = longhaul_core::text::printable(comment, 200);
        let signature = self.pair.sign(bytes);
        let line = BASE64.encode([&ALGORITHM[..], &self.number, signature.as_ref()].concat());
        let both = self.pair.sign(&[signature.as_ref(), comment.as_bytes()].concat());
        let global = BASE64.encode(both.as_ref());
        let first = "signature of a longhaul data directory";
        let signature = format!("{UNTRUSTED}{first}\n{line}\n{TRUSTED}{comment}\n{global}\n");
        Signed { signer: self.public(), signature }
    }
}

impl Signed {
    /// Refuses bytes that differ from the signed ones.
    pub fn verify(&self, bytes: &[u8]) -> fault::Result<()> {
        if self.is_of(bytes) {
            return Ok(());
        }
        bail!(
            "it is not what its signer signed ({}): it is damaged, or was changed; take it again from where it was made",
            longhaul_core::text::printable(&self.signer, 80)
        )
    }

    fn is_of(&self, bytes: &[u8]) -> bool {
        self.checked(bytes).is_some()
    }

    /// Checks all four lines, in their places, by the named key.
    fn checked(&self, bytes: &[u8]) -> Option<()> {
        if self.signature.len() > SIGNATURE_BYTES_MAX {
            return None;
        }
        let (key_number, key) = parts::<PUBLIC>(&self.signer)?;
        let mut lines = self.signature.lines();
        lines.next()?.strip_prefix(UNTRUSTED)?;
        let (number, signature) = parts::<SIGNATURE>(lines.next()?)?;
        let comment = lines.next()?.strip_prefix(TRUSTED)?;
        let global = BASE64.decode(lines.next()?).ok()?;
        if number != key_number || lines.next().is_some() {
            return None;
        }
        let key = UnparsedPublicKey::new(&ED25519, key);
        key.verify(bytes, &signature).ok()?;
        key.verify(&[&signature[..], comment.as_bytes()].concat(), &global).ok()
    }
}

/// The number and the rest of a public key or a signature.
fn parts<const LENGTH: usize>(line: &str) -> Option<([u8; NUMBER], [u8; LENGTH])> {
    let bytes = BASE64.decode(line).ok()?;
    let rest = bytes.strip_prefix(&ALGORITHM[..])?;
    let (number, rest) = rest.split_first_chunk::<NUMBER>()?;
    Some((*number, rest.try_into().ok()?))
}

/// The keys of others that a data directory accepts.
pub struct Signers(PathBuf);

impl Signers {
    /// The signers of a data directory.
    pub fn of(home: &Home) -> Self {
        Self(home.path().join(SIGNERS_FILE))
    }

    /// All accepted keys.
    pub fn list(&self) -> fault::Result<BTreeSet<String>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
            Err(error) => Err(error).with_context(|| format!("cannot read `{}`", self.0.display())),
        }
    }

    /// Accepts a key from now on.
    pub fn add(&self, key: &str) -> fault::Result<()> {
        if parts::<PUBLIC>(key).is_none() {
            bail!("`{}` is no public key; `longhaul trust key` shows one", longhaul_core::text::printable(key, 80));
        }
        let mut known = self.list()?;
        if known.insert(key.to_owned()) { self.write(&known) } else { Ok(()) }
    }

    /// Removes a key; returns whether it was accepted.
    pub fn remove(&self, key: &str) -> fault::Result<bool> {
        let mut known = self.list()?;
        let was_known = known.remove(key);
        if was_known {
            self.write(&known)?;
        }
        Ok(was_known)
    }

    fn write(&self, known: &BTreeSet<String>) -> fault::Result<()> {
        let half = self.0.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?;
        for key in known {
            writeln!(file, "{key}")?;
        }
        file.sync_all()?;
        fs::rename(&half, &self.0).with_context(|| format!("cannot write `{}`", self.0.display()))
    }
}

/// The signer of these bytes.
///
/// # Errors
/// The bytes differ from the signed ones.
pub fn signer_of(home: &Home, signed: Option<&Signed>, bytes: &[u8]) -> fault::Result<Signer> {
    let Some(signed) = signed else { return Ok(Signer::Nobody) };
    signed.verify(bytes)?;
    let key = signed.signer.clone();
    let own = SigningKey::read(&home.path().join(KEY_FILE))?;
    Ok(match own {
        Some(own) if own.public() == key => Signer::Own { key },
        _ if Signers::of(home).list()?.contains(&key) => Signer::Known { key },
        _ => Signer::Unknown { key },
    })
}

/// Accepts data whose signer this data directory knows, or which `accepts` names. Writes nothing: the caller calls
/// [`remember`] once it has taken the data.
///
/// # Errors
/// A refusal that names its remedy.
pub fn admit(
    home: &Home,
    what: &str,
    signed: Option<&Signed>,
    bytes: &[u8],
    accepts: &AcceptedRisks,
) -> fault::Result<Signer> {
    let signer = signer_of(home, signed, bytes).with_context(|| what.to_owned())?;
    match (&signer, &accepts.signer) {
        (Signer::Nobody, Some(named)) => {
            bail!(
                "{what} is unsigned, and not signed by {}; take it again from where it was made, or if you know where it \
                 is from, say --unsigned in place of --signer",
                longhaul_core::text::printable(named, 80)
            )
        }
        (Signer::Nobody, None) if accepts.unsigned => {}
        (Signer::Nobody, None) => {
            bail!("{what} is unsigned, so anybody may have written it; if you know where it is from, add --unsigned")
        }
        (Signer::Own { key } | Signer::Known { key } | Signer::Unknown { key }, Some(named)) if named != key => {
            bail!(
                "{what} is signed by {key}, and not by {}; compare both with `longhaul trust key` where it was made, and \
                 name the one that is shown there",
                longhaul_core::text::printable(named, 80)
            )
        }
        (Signer::Unknown { key }, None) => bail!(
            "{what} is signed by {key}, which is unknown here; compare it with `longhaul trust key` where it was \
             made, then add --signer {key}"
        ),
        _ => {}
    }
    Ok(signer)
}

/// Stores a signer who was accepted by name.
pub fn remember(home: &Home, signer: &Signer) -> fault::Result<()> {
    match signer {
        Signer::Unknown { key } => Signers::of(home).add(key),
        Signer::Nobody | Signer::Own { .. } | Signer::Known { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(folder: &tempfile::TempDir, name: &str) -> Home {
        Home::find(Some(folder.path().join(name))).expect("a path")
    }

    #[test]
    fn what_was_signed_is_taken_and_one_changed_byte_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (here, there) = (home(&folder, "here"), home(&folder, "there"));
        let key = SigningKey::of(&there).expect("a key");
        assert_eq!(SigningKey::of(&there).expect("the same").public(), key.public());
        assert_eq!(fs::metadata(there.path().join(KEY_FILE)).expect("made").mode() & 0o777, 0o600);
        let (bytes, none) = (b"some bytes".to_vec(), AcceptedRisks::default());
        let signed = key.sign(&bytes, "a test");
        let take = |home: &Home, signed: Option<&Signed>, bytes: &[u8], accepts: &AcceptedRisks| {
            admit(home, "it", signed, bytes, accepts).map_err(|error| format!("{error:#}"))
        };
        assert!(matches!(take(&there, Some(&signed), &bytes, &none), Ok(Signer::Own { .. })));
        let refused = take(&here, Some(&signed), &bytes, &none).expect_err("unknown");
        assert!(refused.contains(&format!("add --signer {}", key.public())), "{refused}");
        let named = AcceptedRisks { signer: Some(key.public()), ..none.clone() };
        let signer = take(&here, Some(&signed), &bytes, &named).expect("named");
        here.make().expect("ours");
        remember(&here, &signer).expect("known");
        assert!(matches!(take(&here, Some(&signed), &bytes, &none), Ok(Signer::Known { .. })));
        for (at, _) in bytes.iter().enumerate() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(take(&here, Some(&signed), &changed, &none).expect_err("changed").contains("was changed"));
        }
        // Every character of the signature counts, and none makes the reader panic.
        for at in 0..signed.signature.len() {
            let mut text = signed.signature.clone().into_bytes();
            text[at] = if text[at] == b'A' { b'B' } else { b'A' };
            let other = Signed { signature: String::from_utf8(text).expect("text"), ..signed.clone() };
            let first_line = signed.signature.find('\n').expect("lines");
            // The first comment is the only part that minisign does not sign.
            if at > first_line {
                assert!(take(&here, Some(&other), &bytes, &none).is_err(), "byte {at}");
            }
        }
        for cut in 0..signed.signature.len() {
            let other = Signed { signature: signed.signature[..cut].to_owned(), ..signed.clone() };
            let is_whole = cut + 1 == signed.signature.len();
            assert_eq!(take(&here, Some(&other), &bytes, &none).is_ok(), is_whole, "cut at {cut}");
        }
    }

    #[test]
    fn what_nobody_signed_needs_a_word_and_another_key_is_another_signer() {
        let folder = tempfile::tempdir().expect("a folder");
        let (here, there) = (home(&folder, "here"), home(&folder, "there"));
        let take = |signed: Option<&Signed>, accepts: AcceptedRisks| {
            admit(&here, "it", signed, b"x", &accepts).map_err(|error| format!("{error:#}"))
        };
        assert!(take(None, AcceptedRisks::default()).expect_err("unsigned").contains("add --unsigned"));
        assert_eq!(take(None, AcceptedRisks { unsigned: true, signer: None }), Ok(Signer::Nobody));
        let key = SigningKey::of(&there).expect("a key");
        assert!(take(None, AcceptedRisks { unsigned: true, signer: Some(key.public()) }).is_err());
        // Another signer who claims to be this key.
        let other = SigningKey::of(&home(&folder, "other")).expect("a key");
        let forged = SigningKey { number: key.number, pair: other.pair }.sign(b"x", "y");
        let claimed = Signed { signer: key.public(), ..forged.clone() };
        assert!(take(Some(&claimed), AcceptedRisks { unsigned: true, signer: Some(key.public()) }).is_err());
        let named = AcceptedRisks { unsigned: true, signer: Some(key.public()) };
        assert!(take(Some(&forged), named).expect_err("another").contains("and not by"));
        assert!(Signers::of(&here).add("no key").is_err());
    }
}
