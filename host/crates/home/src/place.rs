//! The id of a data directory, by which machines that share their state tell whose trees are whose.
//!
//! The file `place` has it. It is made when the state of the data directory goes into a database that other machines
//! reach, and stays: a directory that is moved keeps its trees, and so its id. A directory that never shared its state
//! has none.

use crate::directory::Home;
use longhaul_core::fault::{self, Context as _};
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;

/// The file's name in the data directory.
const FILE: &str = "place";

/// The longest id, in bytes.
const ID_BYTES_MAX: u64 = 64;

/// A fresh random id of the kernel.
const RANDOM: &str = "/proc/sys/kernel/random/uuid";

/// A data directory that shares its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomePlace {
    /// Its id.
    pub id: String,
    /// The name of the machine; empty where the system does not tell it.
    pub host: String,
}

impl Home {
    /// The place of this directory; none if its state was never shared.
    ///
    /// # Errors
    /// When the file is there and cannot be read.
    pub fn place(&self) -> fault::Result<Option<HomePlace>> {
        let path = self.path().join(FILE);
        match crate::text_file::read(&path, ID_BYTES_MAX) {
            Ok(text) => Ok(Some(HomePlace { id: text.trim().to_owned(), host: host_name() })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
        }
    }

    /// The place of this directory, which gets an id if it has none. Only the owner of the directory calls this.
    ///
    /// # Errors
    /// When the file can neither be read nor be made.
    pub fn make_place(&self) -> fault::Result<HomePlace> {
        if let Some(place) = self.place()? {
            return Ok(place);
        }
        let id = random_id()?;
        self.write_whole(FILE, &id)?;
        Ok(HomePlace { id, host: host_name() })
    }

    /// Writes a small file of the data directory, mode 0600, which appears whole or not at all.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn write_whole(&self, name: &str, text: &str) -> fault::Result<()> {
        let path = self.path().join(name);
        let unfinished = self.path().join(format!("{name}.new"));
        let failed = || format!("cannot write `{}`; make room, or make it writable, and try again", path.display());
        let mut options = fs::OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished).with_context(failed)?;
        file.write_all(format!("{text}\n").as_bytes()).with_context(failed)?;
        file.sync_all().with_context(failed)?;
        fs::rename(&unfinished, &path).with_context(failed)?;
        fs::File::open(self.path()).and_then(|directory| directory.sync_all()).with_context(failed)
    }
}

/// A fresh random id.
///
/// # Errors
/// When the kernel gives none.
pub fn random_id() -> fault::Result<String> {
    let random = fs::read_to_string(RANDOM).with_context(|| format!("cannot read `{RANDOM}`"))?;
    Ok(random.trim().to_owned())
}

/// The name of this machine; empty where the system does not tell it.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_an_id_once_it_is_made_and_keeps_it_when_it_is_moved() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::find(Some(folder.path().join("one"))).unwrap();
        home.make().unwrap();
        assert_eq!(home.place().unwrap(), None);
        let place = home.make_place().unwrap();
        assert_eq!((home.make_place().unwrap(), place.id.len()), (place.clone(), 36));
        fs::rename(home.path(), folder.path().join("two")).unwrap();
        let moved = Home::find(Some(folder.path().join("two"))).unwrap();
        assert_eq!(moved.place().unwrap(), Some(place.clone()));
        let other = Home::find(Some(folder.path().join("one"))).unwrap();
        other.make().unwrap();
        assert_ne!(other.make_place().unwrap().id, place.id);
    }
}
