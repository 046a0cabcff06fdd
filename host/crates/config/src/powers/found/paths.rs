//! Paths in a `longhaul.toml`: those that lead out of the project, and the project's own files with their digests.
//!
//! A file is read for its digest alone.

use longhaul_core::Digest;
use longhaul_core::digest::Digester;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// Words of a command that may name a file: the whole word, and the parts that a shell would read.
pub(super) fn names_in(word: &str) -> impl Iterator<Item = &str> {
    let ends = |char: char| char.is_whitespace() || "\"'`;&|()<>=,".contains(char);
    std::iter::once(word).chain(word.split(ends))
}

/// The path, from the top of a project, of a file that the project contains, or contains a link to.
pub(super) fn own_file(project: &Path, place: &Path) -> Option<String> {
    let file = place.canonicalize().ok().filter(|file| file.is_file())?;
    let is_inside = |path: &&Path| path.starts_with(project) && !leads_out_of_itself(path);
    let inside = [file.as_path(), place].into_iter().find(is_inside)?.strip_prefix(project).ok()?;
    // Without a leading `.`.
    let inside: PathBuf = inside.components().filter(|part| *part != Component::CurDir).collect();
    Some(inside.to_str()?.to_owned())
}

pub(super) fn digest_of(file: &Path) -> io::Result<Digest> {
    let (mut file, mut digester, mut buffer) = (File::open(file)?, Digester::default(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digester.finish()),
            length => digester.update(&buffer[..length]),
        }
    }
}

/// True when a path may lead out of the project.
pub fn leads_out(path: &Path) -> bool {
    path.is_absolute() || leads_out_of_itself(path)
}

/// True when the path of a program is not the system's.
pub(super) fn is_elsewhere(program: &Path) -> bool {
    let is_system = ["/usr", "/bin", "/sbin", "/nix/store", "/gnu/store"].iter().any(|dir| program.starts_with(dir));
    program.is_absolute() && (!is_system || leads_out_of_itself(program))
}

fn leads_out_of_itself(path: &Path) -> bool {
    path.components().any(|part| part == Component::ParentDir)
}
