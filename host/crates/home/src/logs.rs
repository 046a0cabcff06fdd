//! The log of the host: as text or as JSON, to standard error or into a file that is rotated by size.
//!
//! | variable | meaning |
//! |---|---|
//! | `LONGHAUL_LOG` | the filter, for example `debug` or `warn,longhaul=info` |
//! | `LONGHAUL_LOG_FORMAT` | `text`, the default, or `json`: one object a line, with the time |
//! | `LONGHAUL_LOG_FILE` | the file; default: standard error |
//! | `LONGHAUL_LOG_FILE_MB` | the size in MB at which the file is rotated; default 10 |
//! | `LONGHAUL_LOG_FILES` | the number of older files, as `FILE.1` (the newest) and on; default 5 |
//!
//! A line is in one file, whole. No line is lost silently: when the file cannot be written, lines go to standard error.
//! Several processes that log into one file would each rotate it; only the server should have one.

use longhaul_core::fault::{self, Context, Fault, bail};
use longhaul_core::text::message;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// The default filter.
const USUAL: &str = "warn,longhaul_engine=info";

/// Files that may be kept.
const FILES_MAX: u32 = 1_000;

/// The format of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

impl FromStr for LogFormat {
    type Err = Fault;

    fn from_str(text: &str) -> fault::Result<Self> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => bail!("LONGHAUL_LOG_FORMAT is `{other}`; write `text` or `json`"),
        }
    }
}

/// The settings of the host's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// The format of lines.
    pub format: LogFormat,
    /// The file; none: standard error.
    pub file: Option<PathBuf>,
    /// The size at which the file is rotated, in bytes. Default 10 MB. A longer line has a file of its own.
    pub file_bytes_max: u64,
    /// Older files that are kept. Default 5.
    pub files_max: u32,
}

impl Default for LogSettings {
    fn default() -> Self {
        Self { format: LogFormat::Text, file: None, file_bytes_max: 10 << 20, files_max: 5 }
    }
}

impl LogSettings {
    /// The settings in the environment.
    ///
    /// # Errors
    /// A variable has an invalid value.
    pub fn from_environment(variable: &dyn Fn(&str) -> Option<String>) -> fault::Result<Self> {
        let usual = Self::default();
        let number = |name: &str, max: u64| {
            let text = variable(name);
            let parsed = text.as_deref().map(str::parse::<u64>).transpose();
            match parsed {
                Ok(Some(number)) if (1..=max).contains(&number) => Ok(Some(number)),
                Ok(None) => Ok(None),
                _ => bail!("{name} is `{}`; write a number from 1 to {max}", text.unwrap_or_default()),
            }
        };
        let format = variable("LONGHAUL_LOG_FORMAT").map(|text| text.parse()).transpose()?;
        let mb = number("LONGHAUL_LOG_FILE_MB", 1 << 20)?;
        let files = number("LONGHAUL_LOG_FILES", FILES_MAX.into())?;
        Ok(Self {
            format: format.unwrap_or_default(),
            file: variable("LONGHAUL_LOG_FILE").map(PathBuf::from),
            file_bytes_max: mb.map_or(usual.file_bytes_max, |mb| mb << 20),
            files_max: files.and_then(|files| u32::try_from(files).ok()).unwrap_or(usual.files_max),
        })
    }
}

/// Starts the log for the whole process.
///
/// # Errors
/// The file cannot be opened. A logger that was started before stays.
pub fn start(settings: &LogSettings) -> fault::Result<()> {
    let filter = EnvFilter::try_from_env("LONGHAUL_LOG").unwrap_or_else(|_| EnvFilter::new(USUAL));
    let target = match &settings.file {
        None => Target::Error,
        Some(file) => {
            let rotating = Rotating::open(file, settings.file_bytes_max, settings.files_max);
            let rotating = rotating.with_context(|| format!("cannot log into `{}`", file.display()))?;
            Target::File(Arc::new(Mutex::new(rotating)))
        }
    };
    let is_file = settings.file.is_some();
    // Colours are escape sequences, and none of those is printed.
    let base = tracing_subscriber::fmt().with_env_filter(filter).with_writer(target).with_ansi(false);
    // An error means that a logger was set before.
    let _ = match settings.format {
        LogFormat::Json => base.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init(),
        LogFormat::Text if is_file => base.with_target(false).try_init(),
        LogFormat::Text => base.without_time().with_target(false).try_init(),
    };
    Ok(())
}

#[derive(Clone)]
enum Target {
    Error,
    File(Arc<Mutex<Rotating>>),
}

impl<'a> MakeWriter<'a> for Target {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for Target {
    /// A whole event: the subscriber writes each at once. It may contain foreign text, so it is cleaned like any output
    /// of a command.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = format!("{}\n", message(&String::from_utf8_lossy(event), 0));
        let written = match self {
            Self::Error => io::stderr().write_all(line.as_bytes()),
            Self::File(file) => file.lock().unwrap_or_else(PoisonError::into_inner).write_line(line.as_bytes()),
        };
        // Falls back to standard error when the file cannot be written.
        written.or_else(|_| io::stderr().write_all(line.as_bytes()))?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is rotated at a size.
struct Rotating {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    files_max: u32,
}

impl Rotating {
    fn open(path: &Path, bytes_max: u64, files_max: u32) -> io::Result<Self> {
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes, bytes_max, files_max })
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if self.bytes > 0 && self.bytes.saturating_add(length) > self.bytes_max {
            self.begin_anew()?;
        }
        self.file.write_all(line)?;
        self.bytes += length;
        Ok(())
    }

    /// A kill in the middle skips a number, and loses nothing.
    fn begin_anew(&mut self) -> io::Result<()> {
        let numbered = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..self.files_max).rev() {
            match std::fs::rename(numbered(number), numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        std::fs::rename(&self.path, numbered(1))?;
        self.file = append(&self.path)?;
        self.bytes = 0;
        Ok(())
    }
}

/// Mode 0600, because a log names the actions of runs.
fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_begun_anew_at_its_length_and_the_oldest_file_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut log = Rotating::open(&path, 10, 2).unwrap();
        for line in ["one 67\n", "two\n", "three 78\n", "longer than all of it\n", "five\n"] {
            log.write_line(line.as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).ok();
        assert_eq!(read("log").as_deref(), Some("five\n"));
        assert_eq!(read("log.1").as_deref(), Some("longer than all of it\n"));
        assert_eq!(read("log.2").as_deref(), Some("three 78\n"));
        assert_eq!(read("log.3"), None);
        // The next process continues the same file.
        drop(log);
        let mut log = Rotating::open(&path, 10, 2).unwrap();
        log.write_line(b"six 78\n").unwrap();
        assert_eq!((read("log").as_deref(), read("log.1").as_deref()), (Some("six 78\n"), Some("five\n")));
    }

    #[test]
    fn a_variable_that_is_no_number_is_refused_by_name() {
        let with = |name: &'static str, value: &'static str| {
            LogSettings::from_environment(&move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(LogSettings::from_environment(&|_| None).unwrap(), LogSettings::default());
        assert_eq!(with("LONGHAUL_LOG_FILE_MB", "3").unwrap().file_bytes_max, 3 << 20);
        for (name, value) in
            [("LONGHAUL_LOG_FILE_MB", "0"), ("LONGHAUL_LOG_FILES", "x"), ("LONGHAUL_LOG_FORMAT", "xml")]
        {
            let refused = with(name, value).unwrap_err().to_string();
            assert!(refused.contains(name), "{refused}");
        }
    }
}
