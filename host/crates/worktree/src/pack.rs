//! Commits with their files as one block of bytes, for a clone that lacks them.
//!
//! The block is git's objects one after the other, each after those that it names, compressed with zstd. It is no
//! packfile of git: libgit2 reads such a file of a stranger without a bound on memory or time. Unpacking reads the
//! whole block before it writes, and refuses an object that names one which the repository does not have, so that every
//! object there is complete, whatever part of a block was written before it was refused. Neither way moves a ref; see
//! [`UserRepository::set_refs_of_run`].

use crate::TreeError;
use crate::caps::{TreeCaps, cap};
use crate::git::UserRepository;
use crate::scan::count;
use git2::{ObjectType, Odb, Oid, Repository, Sort};
use std::collections::HashSet;
use std::io::{self, BufReader, Read, Write};

/// Bytes of a block: the longest content that a store takes.
const PACK_BYTES_MAX: u64 = 256 << 20;

/// Bytes of one object.
const OBJECT_BYTES_MAX: u64 = 256 << 20;

/// Bytes of all objects of a block: as many as a tree may have.
const OBJECTS_BYTES_MAX: u64 = 4 << 30;

/// Objects of a block: five times the files of a tree.
const OBJECTS_MAX: u64 = 1_000_000;

/// The first bytes, with the version of the format.
const MAGIC: &[u8] = b"longhaul-objects 1\n";

/// zstd's default.
const LEVEL: i32 = 3;

/// 16 MiB: versions of a file lie near each other.
const WINDOW_LOG: u32 = 24;

impl UserRepository {
    /// The objects reachable from the commits `tips` and not from `hidden`, as one block. Hidden commits that the
    /// repository does not have are passed over.
    ///
    /// # Errors
    /// [`TreeError::NoCommit`] for a tip, [`TreeError::Limit`], or when git cannot read an object.
    pub fn pack(&self, tips: &[String], hidden: &[String]) -> Result<Vec<u8>, TreeError> {
        let repo = self.repo()?;
        let mut packer = Packer::new(&repo)?;
        let commits = new_commits(&repo, tips, hidden)?;
        let new: HashSet<Oid> = commits.iter().copied().collect();
        hidden.iter().filter_map(|id| Oid::from_str(id).ok()).try_for_each(|id| packer.know(id))?;
        for id in commits {
            packer.commit(id, &new)?;
        }
        packer.finish()
    }

    /// Adds the objects of a block to the repository, on the disk when this returns.
    ///
    /// # Errors
    /// [`TreeError::Stored`] when it is damaged, over a limit, or needs objects that the repository does not have.
    pub fn unpack(&self, pack: &[u8]) -> Result<(), TreeError> {
        if count(pack.len()) > PACK_BYTES_MAX {
            return Err(refused(format!("have {} bytes, and {PACK_BYTES_MAX} are the most", pack.len())));
        }
        let repo = self.repo()?;
        let odb = repo.odb().map_err(TreeError::git("open the object database"))?;
        // The checksum stands at the end: a damaged block is refused before anything is written.
        let mut checked = Unpacker::new(pack)?;
        while checked.object()?.is_some() {}
        let mut unpacker = Unpacker::new(pack)?;
        while let Some((kind, bytes)) = unpacker.object()? {
            check_named(&odb, kind, &bytes)?;
            odb.write(kind, &bytes).map_err(TreeError::git("write an object"))?;
        }
        // Before a ref points at them.
        let objects = repo.commondir().join("objects");
        let synced = std::fs::File::open(&objects).and_then(|dir| Ok(rustix::fs::syncfs(&dir)?));
        synced.map_err(TreeError::io("sync", objects))
    }
}

/// Writes a block.
struct Packer<'a> {
    repo: &'a Repository,
    odb: Odb<'a>,
    out: zstd::Encoder<'static, Vec<u8>>,
    /// Objects that are in the block, or that the reader has.
    seen: HashSet<Oid>,
    objects: u64,
    bytes: u64,
}

impl<'a> Packer<'a> {
    fn new(repo: &'a Repository) -> Result<Self, TreeError> {
        let odb = repo.odb().map_err(TreeError::git("open the object database"))?;
        let out = encoder().map_err(TreeError::io("pack commits of", repo.path()))?;
        Ok(Self { repo, odb, out, seen: HashSet::new(), objects: 0, bytes: 0 })
    }

    /// Leaves out the files of a commit that the reader has.
    fn know(&mut self, commit: Oid) -> Result<(), TreeError> {
        // A shallow clone does not have the parents of its oldest commits.
        let Ok(commit) = self.repo.find_commit(commit) else { return Ok(()) };
        let mut waiting = vec![commit.tree_id()];
        while let Some(id) = waiting.pop() {
            if !self.seen.insert(id) {
                continue;
            }
            for entry in self.repo.find_tree(id).map_err(TreeError::git("read a tree"))?.iter() {
                match entry.kind() {
                    Some(ObjectType::Tree) => waiting.push(entry.id()),
                    _ => drop(self.seen.insert(entry.id())),
                }
            }
        }
        Ok(())
    }

    fn commit(&mut self, id: Oid, new: &HashSet<Oid>) -> Result<(), TreeError> {
        let commit = self.repo.find_commit(id).map_err(TreeError::git("read a commit"))?;
        commit.parent_ids().filter(|parent| !new.contains(parent)).try_for_each(|parent| self.know(parent))?;
        self.tree(commit.tree_id(), 1)?;
        self.put(id, ObjectType::Commit)
    }

    /// Adds what a directory names before the directory.
    fn tree(&mut self, id: Oid, depth: u64) -> Result<(), TreeError> {
        if !self.seen.insert(id) {
            return Ok(());
        }
        // Bounds the recursion, too. No deeper commit can be checked out.
        cap("depth_max", depth, TreeCaps::default().depth_max + 1, id.to_string().as_bytes())?;
        let repo = self.repo;
        for entry in repo.find_tree(id).map_err(TreeError::git("read a tree"))?.iter() {
            match entry.kind() {
                Some(ObjectType::Tree) => self.tree(entry.id(), depth + 1)?,
                Some(ObjectType::Blob) if self.seen.insert(entry.id()) => self.put(entry.id(), ObjectType::Blob)?,
                // A submodule is a commit of another repository.
                _ => {}
            }
        }
        self.put(id, ObjectType::Tree)
    }

    fn put(&mut self, id: Oid, kind: ObjectType) -> Result<(), TreeError> {
        let name = id.to_string();
        let (len, _) = self.odb.read_header(id).map_err(TreeError::git("read the size of an object"))?;
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(count(len));
        cap("object_bytes_max", count(len), OBJECT_BYTES_MAX, name.as_bytes())?;
        cap("objects_bytes_max", self.bytes, OBJECTS_BYTES_MAX, name.as_bytes())?;
        cap("objects_max", self.objects, OBJECTS_MAX, name.as_bytes())?;
        let object = self.odb.read(id).map_err(TreeError::git("read an object"))?;
        let written = write_object(&mut self.out, kind, object.data());
        written.map_err(TreeError::io("pack commits of", self.repo.path()))?;
        cap("pack_bytes_max", count(self.out.get_ref().len()), PACK_BYTES_MAX, name.as_bytes())
    }

    fn finish(self) -> Result<Vec<u8>, TreeError> {
        let pack = self.out.finish().map_err(TreeError::io("pack commits of", self.repo.path()))?;
        cap("pack_bytes_max", count(pack.len()), PACK_BYTES_MAX, b"")?;
        Ok(pack)
    }
}

/// Reads a block.
struct Unpacker<'a> {
    decoder: zstd::Decoder<'static, BufReader<&'a [u8]>>,
    objects: u64,
    bytes: u64,
}

impl<'a> Unpacker<'a> {
    fn new(pack: &'a [u8]) -> Result<Self, TreeError> {
        let decoder = zstd::Decoder::new(pack).map_err(|error| damaged(&error))?;
        let mut unpacker = Self { decoder, objects: 0, bytes: 0 };
        if unpacker.read(count(MAGIC.len()))? != MAGIC {
            return Err(refused("are no commits, or those of a later version".to_owned()));
        }
        Ok(unpacker)
    }

    /// The next object. None: the block ends.
    fn object(&mut self) -> Result<Option<(ObjectType, Vec<u8>)>, TreeError> {
        let head = self.read(9)?;
        if head.is_empty() {
            return Ok(None);
        }
        let Ok([kind, len @ ..]) = <[u8; 9]>::try_from(head) else { return Err(refused("end early".to_owned())) };
        let kind = kind_of(kind).ok_or_else(|| refused(format!("hold an object of the unknown kind {kind}")))?;
        // The stored bytes say the length: it is bounded before anything is read.
        let len = u64::from_le_bytes(len);
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(len);
        if len > OBJECT_BYTES_MAX || self.bytes > OBJECTS_BYTES_MAX || self.objects > OBJECTS_MAX {
            let (objects, bytes) = (self.objects, self.bytes);
            return Err(refused(format!("have {objects} objects of {bytes} bytes or more, which is over the limit")));
        }
        let bytes = self.read(len)?;
        if count(bytes.len()) != len {
            return Err(refused("end early".to_owned()));
        }
        Ok(Some((kind, bytes)))
    }

    /// The next bytes, fewer at the end.
    fn read(&mut self, len: u64) -> Result<Vec<u8>, TreeError> {
        let mut bytes = Vec::new();
        self.decoder.by_ref().take(len).read_to_end(&mut bytes).map_err(|error| damaged(&error))?;
        Ok(bytes)
    }
}

/// The commits that a reader of `hidden` lacks, parents before children.
fn new_commits(repo: &Repository, tips: &[String], hidden: &[String]) -> Result<Vec<Oid>, TreeError> {
    let failed = || TreeError::git("walk the history");
    let mut walk = repo.revwalk().map_err(failed())?;
    walk.set_sorting(Sort::TOPOLOGICAL | Sort::REVERSE).map_err(failed())?;
    for tip in tips {
        let absent = || TreeError::NoCommit { commit: tip.clone(), dir: repo.path().to_owned() };
        let id = Oid::from_str(tip).and_then(|id| repo.find_commit(id)).map_err(|_| absent())?.id();
        walk.push(id).map_err(failed())?;
    }
    for id in hidden.iter().filter_map(|id| Oid::from_str(id).ok()).filter(|id| repo.find_commit(*id).is_ok()) {
        walk.hide(id).map_err(failed())?;
    }
    walk.collect::<Result<Vec<_>, _>>().map_err(failed())
}

/// Refuses an object that names one which the repository does not have.
fn check_named(odb: &Odb<'_>, kind: ObjectType, bytes: &[u8]) -> Result<(), TreeError> {
    let named = match kind {
        ObjectType::Tree => named_by_tree(bytes),
        ObjectType::Commit => named_by_commit(bytes),
        _ => Some(Vec::new()),
    };
    let named = named.ok_or_else(|| refused(format!("hold a {kind} that cannot be read")))?;
    match named.iter().find(|id| !odb.exists(**id)) {
        None => Ok(()),
        Some(id) => Err(refused(format!("need the object {id}, which this repository does not have"))),
    }
}

/// The files and directories of a directory, without submodules.
fn named_by_tree(mut bytes: &[u8]) -> Option<Vec<Oid>> {
    let mut named = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let id = bytes.get(end + 1..end + 21)?;
        if !bytes.starts_with(b"160000 ") {
            named.push(Oid::from_bytes(id).ok()?);
        }
        bytes = &bytes[end + 21..];
    }
    Some(named)
}

/// The directory and the parents of a commit.
fn named_by_commit(bytes: &[u8]) -> Option<Vec<Oid>> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut named = vec![id_of(lines.next()?.strip_prefix(b"tree ")?)?];
    for parent in lines.map_while(|line| line.strip_prefix(b"parent ")) {
        named.push(id_of(parent)?);
    }
    Some(named)
}

fn id_of(digits: &[u8]) -> Option<Oid> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.len() == 40)?;
    Oid::from_str(text).ok()
}

fn encoder() -> io::Result<zstd::Encoder<'static, Vec<u8>>> {
    let mut out = zstd::Encoder::new(Vec::new(), LEVEL)?;
    out.include_checksum(true)?;
    out.window_log(WINDOW_LOG)?;
    out.long_distance_matching(true)?;
    out.write_all(MAGIC)?;
    Ok(out)
}

fn write_object(out: &mut impl Write, kind: ObjectType, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[code_of(kind)])?;
    out.write_all(&count(bytes.len()).to_le_bytes())?;
    out.write_all(bytes)
}

fn code_of(kind: ObjectType) -> u8 {
    match kind {
        ObjectType::Commit => 1,
        ObjectType::Tree => 2,
        ObjectType::Blob | ObjectType::Any | ObjectType::Tag => 3,
    }
}

fn kind_of(code: u8) -> Option<ObjectType> {
    match code {
        1 => Some(ObjectType::Commit),
        2 => Some(ObjectType::Tree),
        3 => Some(ObjectType::Blob),
        _ => None,
    }
}

fn refused(why: String) -> TreeError {
    TreeError::stored("the stored commits", why)
}

fn damaged(error: &io::Error) -> TreeError {
    refused(format!("are damaged: {error}"))
}
