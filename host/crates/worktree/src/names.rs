//! Paths in a tree: joining, display, and the names that no commit accepts.
//!
//! Git keeps its own directory under `.git`, and file systems have other spellings of that name: HFS+ ignores some
//! characters and letter case, NTFS ignores trailing dots and spaces, has streams, and the short name `git~1`. A
//! careful git refuses to clone a commit with any of them. Refuses to correct a name.

/// Bytes of a path that every Linux system can check out: `PATH_MAX` is 4 096 with its end.
const PATH_BYTES_MAX: usize = 4_000;

/// Characters that HFS+ ignores in names, after git's `next_hfs_char`.
pub(crate) const IGNORED_BY_HFS: [char; 16] = [
    '\u{200c}', '\u{200d}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202b}', '\u{202c}', '\u{202d}', '\u{202e}',
    '\u{206a}', '\u{206b}', '\u{206c}', '\u{206d}', '\u{206e}', '\u{206f}', '\u{feff}',
];

/// The reason why no commit accepts a file or a directory of this path. Only its last name is checked.
pub(crate) fn refused(path: &[u8]) -> Option<String> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if is_spelling_of_git(name) {
        return Some("has a name that some system reads as `.git`, which git refuses; choose another name".to_owned());
    }
    let len = path.len();
    (len > PATH_BYTES_MAX)
        .then(|| format!("has a path of {len} bytes, and a checkout takes at most {PATH_BYTES_MAX}; shorten it"))
}

/// A path for people: invalid UTF-8, and control characters, as `\xNN`.
pub(crate) fn shown(raw: &[u8]) -> String {
    let mut text = String::new();
    for chunk in raw.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                text.extend(character.to_string().bytes().map(|byte| format!("\\x{byte:02x}")));
            } else {
                text.push(character);
            }
        }
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    if dir.is_empty() { name.to_vec() } else { [dir, b"/", name].concat() }
}

/// True for `.git` and every name that HFS+ or NTFS equates with it.
pub(crate) fn is_spelling_of_git(name: &[u8]) -> bool {
    // On NTFS a backslash separates names.
    name.split(|byte| *byte == b'\\').any(|part| is_ntfs_spelling(part) || is_hfs_spelling(part))
}

fn is_ntfs_spelling(part: &[u8]) -> bool {
    // A colon begins the name of a stream of the same file.
    let file = part.split(|byte| *byte == b':').next().unwrap_or_default();
    let end = file.iter().rposition(|byte| !matches!(byte, b' ' | b'.')).map_or(0, |last| last + 1);
    let file = &file[..end];
    file.eq_ignore_ascii_case(b".git") || file.eq_ignore_ascii_case(b"git~1")
}

fn is_hfs_spelling(part: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(part) else { return false };
    let seen: String = text.chars().filter(|character| !IGNORED_BY_HFS.contains(character)).collect();
    seen.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_git_is_refused_and_nothing_else() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~1",
            ".git.",
            ".git . ",
            "git~1 ",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            "a\\.git",
            ".git\\hooks",
            "\u{200c}.git",
            ".g\u{200d}iT",
            ".git\u{feff}",
        ] {
            assert!(refused(format!("deep/{name}").as_bytes()).is_some(), "{name:?}");
        }
        for name in [
            ".gitignore",
            ".gitattributes",
            ".github",
            "git",
            "git~2",
            "git~10",
            ".git-keep",
            "x.git",
            ".gi",
            "..",
            "a:b",
        ] {
            assert_eq!(refused(format!("deep/{name}").as_bytes()), None, "{name:?}");
        }
        assert_eq!(refused(&b"a/".repeat(2_000)[..4_000]), None);
        assert!(refused(&b"a/".repeat(2_001)[..4_001]).is_some());
    }

    #[test]
    fn a_path_is_shown_on_one_line() {
        assert_eq!(shown(b"a\xffb\nc"), "a\\xffb\\x0ac");
        assert_eq!(shown("grün".as_bytes()), "grün");
    }
}
