//! The file system of a guest, charged to its quota.
//!
//! Shadows `wasi:filesystem/types`. Each call goes to wasmtime-wasi as it is; a call that writes, that makes a file
//! longer or that makes a new entry is charged before, and so is each write to a stream of a file. Over the limit a
//! guest gets `insufficient-space`, as from a full disk, and may handle it. Space that it gives back is not credited,
//! so what it takes of the disk is never more than what it was charged. Programs outside of WebAssembly are held by the
//! sandbox, and reading is never charged.

use crate::ctx::Ctx;
use crate::disk_quota::DiskQuota;
use bytes::Bytes;
use std::sync::Arc;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::filesystem::{WasiFilesystemCtxView, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::filesystem::types::{self, ErrorCode, Host, HostDescriptor, HostDirectoryEntryStream};
use wasmtime_wasi::p2::{FsError, FsResult, OutputStream, Pollable, StreamError, StreamResult};
use wasmtime_wasi_io::streams::{DynInputStream, DynOutputStream};

/// Bytes that a new file, directory or link counts as: a block of the disk, so that entries without content have an
/// end.
const ENTRY_BYTES: u64 = 4_096;

/// "No space left on device", by its number in every Unix.
const NO_SPACE: i32 = 28;

/// Puts the charged file system in the place of that of wasmtime-wasi.
///
/// # Errors
/// Never, as long as wasmtime allows shadowing.
pub(crate) fn shadow(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let shadowed = types::add_to_linker::<_, ChargedFiles>(linker, charged);
    linker.allow_shadowing(false);
    shadowed
}

fn charge(disk: &DiskQuota, bytes: u64) -> FsResult<()> {
    if disk.take(bytes) { Ok(()) } else { Err(ErrorCode::InsufficientSpace.into()) }
}

/// Names the view of the file system for the linker.
struct ChargedFiles;

impl HasData for ChargedFiles {
    type Data<'a> = ChargedView<'a>;
}

/// The file system of an invocation, and its quota.
struct ChargedView<'a> {
    files: WasiFilesystemCtxView<'a>,
    disk: Arc<DiskQuota>,
}

fn charged(ctx: &mut Ctx) -> ChargedView<'_> {
    let disk = Arc::clone(&ctx.disk);
    ChargedView { files: ctx.filesystem(), disk }
}

impl ChargedView<'_> {
    /// The stream in the table, replaced by one that is charged.
    fn counted(&mut self, stream: Resource<DynOutputStream>) -> FsResult<Resource<DynOutputStream>> {
        let inner = self.files.table.delete(stream)?;
        let counted: DynOutputStream =
            Box::new(ChargedStream { inner, disk: Arc::clone(&self.disk), is_closed: false });
        Ok(self.files.table.push(counted)?)
    }
}

/// A stream that writes into a file.
struct ChargedStream {
    inner: DynOutputStream,
    disk: Arc<DiskQuota>,
    /// True after a refusal: a stream is closed by its first error.
    is_closed: bool,
}

impl ChargedStream {
    fn charge(&mut self, bytes: usize) -> StreamResult<()> {
        if self.is_closed {
            return Err(StreamError::Closed);
        }
        if self.disk.take(bytes as u64) {
            return Ok(());
        }
        self.is_closed = true;
        Err(StreamError::LastOperationFailed(std::io::Error::from_raw_os_error(NO_SPACE).into()))
    }
}

#[async_trait::async_trait]
impl OutputStream for ChargedStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.charge(bytes.len())?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        if self.is_closed { Err(StreamError::Closed) } else { self.inner.flush() }
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if self.is_closed { Err(StreamError::Closed) } else { self.inner.check_write() }
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.charge(bytes.len())?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait::async_trait]
impl Pollable for ChargedStream {
    async fn ready(&mut self) {
        if !self.is_closed {
            self.inner.ready().await;
        }
    }
}

impl Host for ChargedView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        self.files.convert_error_code(error)
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        self.files.filesystem_error_code(error)
    }
}

impl HostDirectoryEntryStream for ChargedView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        self.files.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        HostDirectoryEntryStream::drop(&mut self.files, stream)
    }
}

impl HostDescriptor for ChargedView<'_> {
    async fn set_size(&mut self, file: Resource<types::Descriptor>, size: types::Filesize) -> FsResult<()> {
        let before = self.files.stat(Resource::new_borrow(file.rep())).await?.size;
        charge(&self.disk, size.saturating_sub(before))?;
        self.files.set_size(file, size).await
    }

    async fn write(
        &mut self,
        file: Resource<types::Descriptor>,
        bytes: Vec<u8>,
        offset: types::Filesize,
    ) -> FsResult<types::Filesize> {
        charge(&self.disk, bytes.len() as u64)?;
        self.files.write(file, bytes, offset).await
    }

    fn write_via_stream(
        &mut self,
        file: Resource<types::Descriptor>,
        offset: types::Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.files.write_via_stream(file, offset)?;
        self.counted(stream)
    }

    fn append_via_stream(&mut self, file: Resource<types::Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        let stream = self.files.append_via_stream(file)?;
        self.counted(stream)
    }

    async fn open_at(
        &mut self,
        directory: Resource<types::Descriptor>,
        path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Resource<types::Descriptor>> {
        if open_flags.contains(types::OpenFlags::CREATE) {
            let known = self.files.stat_at(Resource::new_borrow(directory.rep()), path_flags, path.clone()).await;
            if known.is_err() {
                charge(&self.disk, ENTRY_BYTES)?;
            }
        }
        self.files.open_at(directory, path_flags, path, open_flags, flags).await
    }

    async fn create_directory_at(&mut self, directory: Resource<types::Descriptor>, path: String) -> FsResult<()> {
        charge(&self.disk, ENTRY_BYTES)?;
        self.files.create_directory_at(directory, path).await
    }

    async fn link_at(
        &mut self,
        directory: Resource<types::Descriptor>,
        path_flags: types::PathFlags,
        path: String,
        new_directory: Resource<types::Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        charge(&self.disk, ENTRY_BYTES)?;
        self.files.link_at(directory, path_flags, path, new_directory, new_path).await
    }

    async fn symlink_at(
        &mut self,
        directory: Resource<types::Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        charge(&self.disk, ENTRY_BYTES)?;
        self.files.symlink_at(directory, target, path).await
    }

    // The rest takes no space.

    async fn advise(
        &mut self,
        file: Resource<types::Descriptor>,
        offset: types::Filesize,
        length: types::Filesize,
        advice: types::Advice,
    ) -> FsResult<()> {
        self.files.advise(file, offset, length, advice).await
    }

    async fn sync_data(&mut self, file: Resource<types::Descriptor>) -> FsResult<()> {
        self.files.sync_data(file).await
    }

    async fn get_flags(&mut self, file: Resource<types::Descriptor>) -> FsResult<types::DescriptorFlags> {
        self.files.get_flags(file).await
    }

    async fn get_type(&mut self, file: Resource<types::Descriptor>) -> FsResult<types::DescriptorType> {
        self.files.get_type(file).await
    }

    async fn set_times(
        &mut self,
        file: Resource<types::Descriptor>,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        self.files.set_times(file, accessed, modified).await
    }

    async fn read(
        &mut self,
        file: Resource<types::Descriptor>,
        length: types::Filesize,
        offset: types::Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.files.read(file, length, offset).await
    }

    async fn read_directory(
        &mut self,
        directory: Resource<types::Descriptor>,
    ) -> FsResult<Resource<types::DirectoryEntryStream>> {
        self.files.read_directory(directory).await
    }

    async fn sync(&mut self, file: Resource<types::Descriptor>) -> FsResult<()> {
        self.files.sync(file).await
    }

    async fn stat(&mut self, file: Resource<types::Descriptor>) -> FsResult<types::DescriptorStat> {
        self.files.stat(file).await
    }

    async fn stat_at(
        &mut self,
        directory: Resource<types::Descriptor>,
        path_flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::DescriptorStat> {
        self.files.stat_at(directory, path_flags, path).await
    }

    async fn set_times_at(
        &mut self,
        directory: Resource<types::Descriptor>,
        path_flags: types::PathFlags,
        path: String,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        self.files.set_times_at(directory, path_flags, path, accessed, modified).await
    }

    fn drop(&mut self, file: Resource<types::Descriptor>) -> wasmtime::Result<()> {
        HostDescriptor::drop(&mut self.files, file)
    }

    async fn readlink_at(&mut self, directory: Resource<types::Descriptor>, path: String) -> FsResult<String> {
        self.files.readlink_at(directory, path).await
    }

    async fn remove_directory_at(&mut self, directory: Resource<types::Descriptor>, path: String) -> FsResult<()> {
        self.files.remove_directory_at(directory, path).await
    }

    async fn rename_at(
        &mut self,
        directory: Resource<types::Descriptor>,
        path: String,
        new_directory: Resource<types::Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.files.rename_at(directory, path, new_directory, new_path).await
    }

    async fn unlink_file_at(&mut self, directory: Resource<types::Descriptor>, path: String) -> FsResult<()> {
        self.files.unlink_file_at(directory, path).await
    }

    fn read_via_stream(
        &mut self,
        file: Resource<types::Descriptor>,
        offset: types::Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.files.read_via_stream(file, offset)
    }

    async fn is_same_object(
        &mut self,
        one: Resource<types::Descriptor>,
        other: Resource<types::Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.files.is_same_object(one, other).await
    }

    async fn metadata_hash(&mut self, file: Resource<types::Descriptor>) -> FsResult<types::MetadataHashValue> {
        self.files.metadata_hash(file).await
    }

    async fn metadata_hash_at(
        &mut self,
        directory: Resource<types::Descriptor>,
        path_flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::MetadataHashValue> {
        self.files.metadata_hash_at(directory, path_flags, path).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps nothing.
    struct Sink;

    #[async_trait::async_trait]
    impl Pollable for Sink {
        async fn ready(&mut self) {}
    }

    #[async_trait::async_trait]
    impl OutputStream for Sink {
        fn write(&mut self, _: Bytes) -> StreamResult<()> {
            Ok(())
        }

        fn flush(&mut self) -> StreamResult<()> {
            Ok(())
        }

        fn check_write(&mut self) -> StreamResult<usize> {
            Ok(100)
        }
    }

    #[tokio::test]
    async fn a_stream_over_the_limit_fails_as_on_a_full_disk_and_is_closed() {
        let disk = DiskQuota::new(10);
        let mut stream = ChargedStream { inner: Box::new(Sink), disk: Arc::clone(&disk), is_closed: false };
        stream.write(Bytes::from_static(b"12345")).unwrap();
        stream.blocking_write_and_flush(Bytes::from_static(b"12345")).await.unwrap();
        let Err(StreamError::LastOperationFailed(error)) = stream.write(Bytes::from_static(b"6")) else {
            panic!("it was written")
        };
        let error = error.downcast_ref::<std::io::Error>().expect("an error of the system");
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        assert!(matches!(ErrorCode::from(error), ErrorCode::InsufficientSpace));
        assert!(matches!(stream.check_write(), Err(StreamError::Closed)));
        assert!(matches!(stream.write_zeroes(1), Err(StreamError::Closed)));
        assert!(disk.refused().is_some());
    }
}
