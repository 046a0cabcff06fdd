//! Reads a text that another person may have written: the files of a project come with its repository.
//!
//! Refuses a file that is not regular, since a device has no end and a pipe may never begin, and one that is too long.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// The text of a file.
///
/// # Errors
/// The file does not exist or is not regular, it is longer than `bytes_max`, or it is not UTF-8.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    // The file may grow in the meantime.
    let mut text = String::new();
    let read = File::open(path)?.take(bytes_max.saturating_add(1)).read_to_string(&mut text);
    read.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => io::Error::other("it is not text in UTF-8"),
        _ => error,
    })?;
    if text.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("it has more than {bytes_max} bytes; make it shorter")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_has_no_end_or_is_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("text"), "12345").unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        assert_eq!(read(&at("text"), 5).unwrap(), "12345");
        let refused = |name: &str, max| read(&at(name), max).unwrap_err().to_string();
        assert!(refused("text", 4).contains("more than 4 bytes"));
        assert_eq!(refused("zero", 5), "it is no file");
        assert_eq!(refused(".", 5), "it is no file");
        assert!(read(&at("nothing"), 5).is_err_and(|error| error.kind() == io::ErrorKind::NotFound));
    }
}
