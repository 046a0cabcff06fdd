//! Replays replies from a file, and records them to one.
//!
//! A recording is JSON lines. The first is its version, `{"longhaul_recording":1}`. Each other one is
//! one reply:
//!
//! ```json
//! {"digest":"…64 digits…","within":"f1/1/generate","summary":"2 messages, last user: add a test","request":{…},"reply":{…}}
//! ```
//!
//! `digest` is [`ModelRequest::digest`] of `request` and finds the reply; `request` serves to show the difference when
//! nothing is found; `within` is the invocation that asked, without its run, which another run does not share;
//! `summary` is for people and is not read. Only replies are recorded, not failures.
//!
//! The n-th request of one digest gets the n-th recorded reply of it; the last one does not repeat. Counting is within
//! one invocation, over the replies recorded for it and those without an invocation ([`Model::within`]); a model that
//! was not narrowed in this way counts over all replies.
//!
//! Nothing is invented here: a request that was not recorded is refused, with the difference to the nearest recorded
//! one.

mod difference;

use crate::ModelsError;
use difference::Difference;
use longhaul_core::model::{
    Cost, MessagePart, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener, Usage,
};
use longhaul_core::text::truncate;
use longhaul_core::{Digest, InvocationId};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The end of each error about a request whose reply is not recorded.
pub const RECORD_AGAIN: &str = "; record it again";

/// The version that this file reads and writes.
const VERSION: u32 = 1;

/// The largest recording that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The first line.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    longhaul_recording: u32,
}

/// Any other line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<String>,
    #[serde(default)]
    summary: String,
    request: ModelRequest,
    reply: ModelReply,
}

/// A parsed recording.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    /// The lines with their numbers in the file.
    lines: Vec<(usize, Line)>,
}

impl Recording {
    /// Reads a recording. A last line that a crash truncated is left out.
    ///
    /// # Errors
    /// [`ModelsError::Recording`] with the line.
    pub fn read(path: &Path) -> Result<Self, ModelsError> {
        let bytes = bounded(path, File::open(path).map_err(|error| wrong(path, None, &error.to_string()))?)?;
        let (whole, cut) = bytes.split_at(whole_lines(&bytes));
        let whole = std::str::from_utf8(whole).map_err(|error| wrong(path, None, &error.to_string()))?;
        Self::parse(path, &format!("{whole}{}", std::str::from_utf8(cut).unwrap_or_default()))
    }

    /// Parses the text of `path`.
    ///
    /// # Errors
    /// [`ModelsError::Recording`] with the line.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ModelsError> {
        let mut lines = text.split_inclusive('\n').enumerate().map(|(index, line)| (index + 1, line));
        check_head(path, lines.next().map(|(_, line)| line).unwrap_or_default())?;
        let mut read = Vec::new();
        for (number, text) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let line: Line = match serde_json::from_str(text) {
                Ok(line) => line,
                Err(_) if !text.ends_with('\n') => break,
                Err(error) => return Err(wrong(path, Some(number), &error.to_string())),
            };
            let digest = line.request.digest();
            if digest != line.digest {
                return Err(wrong(
                    path,
                    Some(number),
                    &format!("its request has the digest {digest}; write that, or record it again"),
                ));
            }
            read.push((number, line));
        }
        Ok(Self { path: path.to_owned(), lines: read })
    }

    /// Asks `inner` and appends each reply to `path`, which is made with mode 0600 if it does not exist.
    ///
    /// # Errors
    /// [`ModelsError::Recording`] when the file is no recording or cannot be written.
    pub fn record(inner: Arc<dyn Model>, path: &Path) -> Result<RecordingModel, ModelsError> {
        let file = open_for_append(path)?;
        let file = Arc::new(RecordingFile { path: path.to_owned(), file: Mutex::new(file) });
        Ok(RecordingModel { inner, within: None, file })
    }

    /// The replies of `digest` within `within`, in the order of the file.
    fn found(&self, digest: Digest, within: Option<&str>) -> impl Iterator<Item = &Line> {
        self.lines.iter().map(|(_, line)| line).filter(move |line| line.digest == digest && line.serves(within))
    }

    /// The reason why there is no reply to `request`, which was asked `asked` times before.
    fn unknown(&self, request: &ModelRequest, within: Option<&str>, asked: usize) -> ModelError {
        let place = within.map(|within| format!(" within `{within}`")).unwrap_or_default();
        let path = self.path.display();
        if asked > 0 {
            let text = format!(
                "request {} has {asked} recorded replies in `{path}`{place} and was asked once more",
                request.digest().short()
            );
            return ModelError::Failed(format!("{text}{RECORD_AGAIN}"));
        }
        let nearest = self
            .lines
            .iter()
            .filter(|(_, line)| line.serves(within))
            .map(|(number, line)| (*number, Difference::between(&line.request, request)));
        let nearest = nearest.min_by_key(|(_, difference)| difference.distance());
        let what = match nearest {
            None => "nothing is recorded there".to_owned(),
            Some((number, difference)) => format!("the nearest is line {number}: {difference}"),
        };
        ModelError::Failed(format!(
            "request {} is not in the recording `{path}`{place}; {what}{RECORD_AGAIN}",
            request.digest().short()
        ))
    }
}

impl Line {
    /// A line without an invocation serves all; a caller without one is served by all.
    fn serves(&self, within: Option<&str>) -> bool {
        match (&self.within, within) {
            (Some(recorded), Some(asking)) => recorded == asking,
            (None, _) | (_, None) => true,
        }
    }
}

/// A model that answers from a recording.
pub struct Recorded {
    recording: Arc<Recording>,
    info: ModelInfo,
    within: Option<String>,
    asked: Mutex<HashMap<Digest, usize>>,
    log: Option<Arc<AskedLog>>,
}

impl Recorded {
    /// Answers from `recording`. `context_tokens_max` should be the window of the recorded model.
    #[must_use]
    pub fn new(recording: Arc<Recording>, context_tokens_max: u32) -> Self {
        let name = recording.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let info = ModelInfo { id: format!("recorded/{name}"), context_tokens_max };
        Self { recording, info, within: None, asked: Mutex::default(), log: None }
    }

    /// Notes each request that it answers in `log`.
    pub(crate) fn logging(self, log: Option<Arc<AskedLog>>) -> Self {
        Self { log, ..self }
    }

    fn answer(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let digest = request.digest();
        let within = self.within.as_deref();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let before = asked.get(&digest).copied().unwrap_or(0);
        let Some(line) = self.recording.found(digest, within).nth(before) else {
            return Err(self.recording.unknown(request, within, before));
        };
        asked.insert(digest, before + 1);
        if let Some(log) = &self.log {
            log.note(within, digest);
        }
        Ok(line.reply.clone())
    }
}

#[async_trait::async_trait]
impl Model for Recorded {
    fn info(&self) -> ModelInfo {
        self.info.clone()
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        _cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        let reply = self.answer(request)?;
        heard(&reply.text);
        Ok(reply)
    }

    fn within(&self, invocation: &InvocationId, answered: &[Digest]) -> Option<Arc<dyn Model>> {
        let mut asked = HashMap::new();
        for digest in answered {
            *asked.entry(*digest).or_default() += 1;
        }
        Some(Arc::new(Self {
            recording: Arc::clone(&self.recording),
            info: self.info.clone(),
            within: Some(place_of(invocation)),
            asked: Mutex::new(asked),
            log: self.log.clone(),
        }))
    }
}

/// A file with a line for each request that a recording answered: its digest, and the invocation that asked. A crash
/// test counts them there, since the journal of a killed run does not hold a request whose answer got lost.
pub(crate) struct AskedLog(Mutex<File>);

impl AskedLog {
    pub(crate) fn open(path: &Path) -> Result<Self, ModelsError> {
        let opened = File::options().append(true).create(true).open(path);
        opened.map(|file| Self(Mutex::new(file))).map_err(|error| wrong(path, None, &error.to_string()))
    }

    fn note(&self, within: Option<&str>, digest: Digest) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // One write a line. What is not counted shows as a request that is missing.
        let _ = file.write_all(format!("{digest} {}\n", within.unwrap_or_default()).as_bytes());
    }
}

/// A model that asks another one and records its replies.
pub struct RecordingModel {
    inner: Arc<dyn Model>,
    within: Option<String>,
    file: Arc<RecordingFile>,
}

#[async_trait::async_trait]
impl Model for RecordingModel {
    fn info(&self) -> ModelInfo {
        self.inner.info()
    }

    fn cost_most(&self, request: &ModelRequest) -> Usage {
        self.inner.cost_most(request)
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        let reply = self.inner.ask(request, heard, cost).await?;
        let line = Line {
            digest: request.digest(),
            within: self.within.clone(),
            summary: summary(request),
            request: request.clone(),
            // A recording is the same wherever it was made, and its replies are no endpoint's when they are played.
            reply: ModelReply { endpoint: None, ..reply.clone() },
        };
        // An incomplete recording is useless, so its failure is the request's.
        self.file
            .append(&line)
            .map_err(|error| ModelError::Failed(format!("the reply came and could not be recorded: {error}")))?;
        Ok(reply)
    }

    fn within(&self, invocation: &InvocationId, answered: &[Digest]) -> Option<Arc<dyn Model>> {
        let inner = self.inner.within(invocation, answered).unwrap_or_else(|| Arc::clone(&self.inner));
        Some(Arc::new(Self { inner, within: Some(place_of(invocation)), file: Arc::clone(&self.file) }))
    }
}

struct RecordingFile {
    path: PathBuf,
    file: Mutex<File>,
}

impl RecordingFile {
    /// One write a line, so that a crash truncates at most the last one.
    fn append(&self, line: &Line) -> Result<(), ModelsError> {
        let failed = |cause: String| wrong(&self.path, None, &cause);
        let mut bytes = serde_json::to_vec(line).map_err(|error| failed(error.to_string()))?;
        bytes.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes).and_then(|()| file.flush()).map_err(|error| failed(error.to_string()))
    }
}

/// The file, at its end; a truncated line is removed first.
fn open_for_append(path: &Path) -> Result<File, ModelsError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let failed = |error: std::io::Error| wrong(path, None, &error.to_string());
    let mut options = File::options();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path).map_err(failed)?;
    let bytes = bounded(path, &file)?;
    let whole = whole_lines(&bytes);
    if whole == 0 {
        file.set_len(0).map_err(failed)?;
        let head =
            serde_json::to_string(&Head { longhaul_recording: VERSION }).map_err(|error| failed(error.into()))?;
        writeln!(file, "{head}").map_err(failed)?;
    } else {
        let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        check_head(path, &String::from_utf8_lossy(first))?;
        file.set_len(whole as u64).map_err(failed)?;
    }
    file.seek(SeekFrom::End(0)).map_err(failed)?;
    Ok(file)
}

fn bounded(path: &Path, file: impl std::io::Read) -> Result<Vec<u8>, ModelsError> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| wrong(path, None, &error.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(path, None, "it is larger than 1 GiB; split it"));
    }
    Ok(bytes)
}

/// The length of the complete lines.
fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn check_head(path: &Path, line: &str) -> Result<(), ModelsError> {
    let remedy =
        format!("its first line is not {{\"longhaul_recording\":{VERSION}}}; record it again with this version");
    match serde_json::from_str::<Head>(line) {
        Ok(Head { longhaul_recording: VERSION }) => Ok(()),
        Ok(_) | Err(_) => Err(wrong(path, Some(1), &remedy)),
    }
}

/// The invocation without its run.
fn place_of(invocation: &InvocationId) -> String {
    let text = invocation.as_str();
    text.split_once('/').map_or(text, |(_, place)| place).to_owned()
}

fn summary(request: &ModelRequest) -> String {
    let last = request.messages.last();
    let words = last.and_then(|message| {
        message.parts.iter().rev().find_map(|part| match part {
            MessagePart::Text(text) => Some(text.as_str()),
            MessagePart::Image { .. }
            | MessagePart::Requested(_)
            | MessagePart::Answered { .. }
            | MessagePart::Thought(_) => None,
        })
    });
    let speaker = last.map(|message| format!(", last {:?}", message.speaker).to_lowercase()).unwrap_or_default();
    let words = words.map(|words| format!(": {}", truncate(&words.replace('\n', " "), 60))).unwrap_or_default();
    format!("{} messages{speaker}{words}", request.messages.len())
}

fn wrong(path: &Path, line: Option<usize>, cause: &str) -> ModelsError {
    ModelsError::Recording { path: path.to_owned(), line, cause: cause.to_owned() }
}

#[cfg(test)]
mod tests;
