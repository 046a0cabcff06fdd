//! The child's side of the protocol: calls from one pipe, answers to another.
//!
//! One thread reads, one computes. The reader answers urgent cases (a line that is no call, a full queue) and sets the
//! flags of cancelled completions. When the input ends, the accepted calls are still answered; when the output is
//! closed, the host is gone and serving ends. No line is ever read further than its cap.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::LlamaError;
use crate::model::{LoadOptions, LoadedModel};
use crate::protocol::{
    AnswerBody, CALLS_WAITING_MAX, CallBody, ChildAnswer, ChildCall, ChildFailure, Completion, ErrorKind,
    LINE_BYTES_MAX,
};

/// Loads the model and serves it until the input ends.
///
/// The file is opened, then `confine` makes the process give up all powers but its descriptors, the file's among them,
/// then the first byte is read. If that fails, the model is loaded nevertheless, and its info has the reason. The first
/// line out is the model's [`AnswerBody::Info`], or the [`AnswerBody::Error`] that is returned too.
///
/// # Errors
/// Those of [`LoadedModel::load`]; [`LlamaError::Io`] when the output is closed.
pub fn serve(
    path: &Path,
    options: &LoadOptions,
    confine: impl FnOnce(BorrowedFd<'_>) -> Result<(), String>,
    input: impl Read + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> Result<(), LlamaError> {
    match LoadedModel::load_confined(path, options, confine) {
        Ok(model) => serve_model(model, input, output),
        Err(error) => {
            let body = AnswerBody::Error(error.to_failure());
            write_line(&mut output, &ChildAnswer { id: None, body })?;
            Err(error)
        }
    }
}

/// Serves a loaded model until the input ends.
///
/// The reading thread outlives this call when the output closes first: it waits for a line that
/// may never come, so the process should end.
///
/// # Errors
/// [`LlamaError::Io`] when the output is closed.
pub fn serve_model(
    mut model: LoadedModel,
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> Result<(), LlamaError> {
    let line = Arc::new(Line::new(output));
    line.answer(None, AnswerBody::Info(model.info().clone()))?;
    let (sender, calls) = sync_channel(CALLS_WAITING_MAX);
    let reader_line = Arc::clone(&line);
    std::thread::Builder::new()
        .name("calls".into())
        .spawn(move || read_calls(BufReader::new(input), &reader_line, &sender))
        .map_err(|source| LlamaError::Io { what: "the thread that reads calls".into(), source })?;
    serve_calls(&mut model, &line, &calls)
}

/// State that both threads share: the output, and the completions that can be cancelled.
struct Line<W> {
    output: Mutex<W>,
    cancels: Mutex<HashMap<u64, Arc<AtomicBool>>>,
}

impl<W: Write> Line<W> {
    fn new(output: W) -> Self {
        Line { output: Mutex::new(output), cancels: Mutex::new(HashMap::new()) }
    }

    fn answer(&self, id: Option<u64>, body: AnswerBody) -> Result<(), LlamaError> {
        write_line(&mut *lock(&self.output), &ChildAnswer { id, body })
    }

    /// Refuses a call, from the reading thread. A closed output is left to the other thread.
    fn refuse(&self, id: Option<u64>, kind: ErrorKind, message: String) {
        let _ = self.answer(id, AnswerBody::Error(ChildFailure { kind, message }));
    }
}

/// A call that waits for its turn.
struct Job {
    id: u64,
    body: CallBody,
    cancel: Arc<AtomicBool>,
}

fn serve_calls<W: Write>(model: &mut LoadedModel, line: &Line<W>, calls: &Receiver<Job>) -> Result<(), LlamaError> {
    for job in calls {
        let id = Some(job.id);
        match job.body {
            CallBody::Complete(request) => complete(model, line, job.id, &request, &job.cancel)?,
            CallBody::Tokenize(text) => {
                line.answer(id, AnswerBody::Tokens(model.tokenize(&text)))?;
            }
            CallBody::Info {} => line.answer(id, AnswerBody::Info(model.info().clone()))?,
            // The reader handles these itself.
            CallBody::Cancel(_) => {}
        }
        lock(&line.cancels).remove(&job.id);
    }
    Ok(())
}

fn complete<W: Write>(
    model: &mut LoadedModel,
    line: &Line<W>,
    id: u64,
    request: &Completion,
    cancel: &AtomicBool,
) -> Result<(), LlamaError> {
    let mut closed = None;
    let reply =
        model.complete(request, cancel, &mut |text| match line.answer(Some(id), AnswerBody::Token(text.to_owned())) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                closed = Some(error);
                ControlFlow::Break(())
            }
        });
    if let Some(error) = closed {
        return Err(error);
    }
    let body = match reply {
        Ok(reply) => AnswerBody::Done(reply),
        Err(error) => AnswerBody::Error(error.to_failure()),
    };
    line.answer(Some(id), body)
}

fn read_calls<W: Write>(mut input: impl BufRead, line: &Line<W>, sender: &SyncSender<Job>) {
    let mut bytes = Vec::new();
    loop {
        match read_line(&mut input, &mut bytes) {
            // An input that fails is an input that has ended.
            Err(_) | Ok(LineRead::End) => return,
            Ok(LineRead::TooLong) => {
                let message = format!("the line is longer than {LINE_BYTES_MAX} bytes; send less");
                line.refuse(None, ErrorKind::LineTooLong, message);
            }
            Ok(LineRead::Whole) if bytes.trim_ascii().is_empty() => {}
            Ok(LineRead::Whole) => match serde_json::from_slice(&bytes) {
                Ok(call) => {
                    if take_call(call, line, sender).is_break() {
                        return;
                    }
                }
                Err(error) => {
                    let message = format!("the line is not a call of this protocol: {error}");
                    line.refuse(id_of(&bytes), ErrorKind::BadRequest, message);
                }
            },
        }
    }
}

fn take_call<W: Write>(call: ChildCall, line: &Line<W>, sender: &SyncSender<Job>) -> ControlFlow<()> {
    if let CallBody::Cancel(id) = call.body {
        if let Some(cancel) = lock(&line.cancels).get(&id) {
            cancel.store(true, Ordering::Relaxed);
        }
        return ControlFlow::Continue(());
    }
    let (id, cancel) = (call.id, Arc::new(AtomicBool::new(false)));
    let job = Job { id, body: call.body, cancel: Arc::clone(&cancel) };
    let mut cancels = lock(&line.cancels);
    if cancels.contains_key(&id) {
        let message = format!("a call with the id {id} is still being served; take another");
        line.refuse(Some(id), ErrorKind::BadRequest, message);
        return ControlFlow::Continue(());
    }
    match sender.try_send(job) {
        Ok(()) => {
            cancels.insert(id, cancel);
            ControlFlow::Continue(())
        }
        Err(TrySendError::Full(_)) => {
            let message = format!("{CALLS_WAITING_MAX} calls wait already; try again later");
            line.refuse(Some(id), ErrorKind::Busy, message);
            ControlFlow::Continue(())
        }
        Err(TrySendError::Disconnected(_)) => ControlFlow::Break(()),
    }
}

/// The outcome of reading a line.
enum LineRead {
    Whole,
    TooLong,
    End,
}

/// Reads one line into `bytes`; skips the rest of one that is too long without keeping it.
fn read_line(input: &mut impl BufRead, bytes: &mut Vec<u8>) -> std::io::Result<LineRead> {
    bytes.clear();
    let limit = LINE_BYTES_MAX as u64 + 1;
    input.by_ref().take(limit).read_until(b'\n', bytes)?;
    let is_ended = bytes.pop_if(|last| *last == b'\n').is_some();
    if bytes.len() > LINE_BYTES_MAX {
        skip_line(input)?;
        return Ok(LineRead::TooLong);
    }
    if bytes.is_empty() && !is_ended {
        return Ok(LineRead::End);
    }
    Ok(LineRead::Whole)
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let (length, is_ended) = end.map_or((buffer.len(), false), |end| (end + 1, true));
        input.consume(length);
        if is_ended {
            return Ok(());
        }
    }
}

/// The id of a line that is JSON but no call.
fn id_of(bytes: &[u8]) -> Option<u64> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    value.get("id")?.as_u64()
}

fn write_line(output: &mut impl Write, answer: &ChildAnswer) -> Result<(), LlamaError> {
    let failed = |source| LlamaError::Io { what: "the answers' pipe".into(), source };
    let mut line = serde_json::to_vec(answer).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    output.write_all(&line).and_then(|()| output.flush()).map_err(failed)
}

/// A panic of the other thread leaves nothing half-done behind these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CompletionReply, CompletionStop};
    use crate::test_model;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            lock(&self.0).write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn answers(input: &[u8]) -> Vec<ChildAnswer> {
        let output = Shared::default();
        let input = std::io::Cursor::new(input.to_vec());
        serve_model(test_model::model(), input, output.clone()).expect("serve");
        let bytes = lock(&output.0).clone();
        String::from_utf8(bytes).expect("utf-8").lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    fn reply(answers: &[ChildAnswer], id: u64) -> &CompletionReply {
        let found = answers.iter().find_map(|answer| match &answer.body {
            AnswerBody::Done(reply) if answer.id == Some(id) => Some(reply),
            _ => None,
        });
        found.expect("a reply")
    }

    #[test]
    fn a_completion_streams_its_text_and_then_says_what_it_cost() {
        let call = r#"{"id":1,"complete":{"messages":[{"role":"user","content":"hi"}],"output_tokens_max":9}}"#;
        let answers = answers(format!("\n{call}\n").as_bytes());
        assert!(matches!(answers[0], ChildAnswer { id: None, body: AnswerBody::Info(_) }));
        let streamed: String = answers
            .iter()
            .filter_map(|answer| match &answer.body {
                AnswerBody::Token(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let reply = reply(&answers, 1);
        assert_eq!(reply.text, streamed);
        assert!(reply.output_tokens <= 9 && reply.prompt_tokens > 0, "{reply:?}");
    }

    #[test]
    fn tokenize_and_info_are_answered_and_nonsense_is_refused_with_its_id() {
        let lines = "{\"id\":1,\"tokenize\":\"hello\"}\n{\"id\":2,\"info\":{}}\n{\"id\":3,\"fly\":1}\nx\n";
        let mut rest = answers(lines.as_bytes()).split_off(1);
        rest.sort_by_key(|answer| answer.id.unwrap_or(9));
        assert!(matches!(&rest[0].body, AnswerBody::Tokens(ids) if ids.len() == 2));
        assert!(matches!(&rest[1].body, AnswerBody::Info(_)));
        for (answer, id) in rest[2..].iter().zip([Some(3), None]) {
            let AnswerBody::Error(failure) = &answer.body else { panic!("{answer:?}") };
            assert_eq!((failure.kind, answer.id), (ErrorKind::BadRequest, id));
        }
    }

    #[test]
    fn a_line_past_the_cap_is_refused_and_the_next_one_served() {
        let mut input = vec![b' '; LINE_BYTES_MAX + 1];
        input.extend(b"\n{\"id\":1,\"info\":{}}");
        let long = answers(&input);
        let is_refusal =
            |answer: &&ChildAnswer| matches!(&answer.body, AnswerBody::Error(f) if f.kind == ErrorKind::LineTooLong);
        assert_eq!(long.iter().filter(is_refusal).count(), 1);
        assert!(long.iter().any(|answer| answer.id == Some(1)), "{long:?}");
        let fitting = answers(&vec![b' '; LINE_BYTES_MAX]);
        assert_eq!(fitting.iter().filter(is_refusal).count(), 0);
    }

    #[test]
    fn a_waiting_completion_can_be_cancelled() {
        let complete = r#""complete":{"messages":[{"role":"user","content":"hi"}],"output_tokens_max":500}}"#;
        let lines = format!("{{\"id\":1,{complete}\n{{\"id\":2,{complete}\n{{\"id\":3,\"cancel\":2}}\n");
        let answers = answers(lines.as_bytes());
        assert_eq!(reply(&answers, 2).stop_reason, CompletionStop::Cancelled);
        assert_ne!(reply(&answers, 1).stop_reason, CompletionStop::Cancelled);
    }

    #[test]
    fn a_closed_output_ends_the_serving() {
        let input = std::io::Cursor::new(b"{\"id\":1,\"info\":{}}\n".to_vec());
        assert!(serve_model(test_model::model(), input, Closed).is_err());
    }

    #[test]
    fn a_model_that_does_not_load_is_reported_on_the_pipe() {
        let output = Shared::default();
        let path = Path::new("/nonexistent/model.gguf");
        let options = LoadOptions::default();
        let result = serve(path, &options, |_| panic!("nothing is opened"), std::io::empty(), output.clone());
        assert!(result.is_err());
        let line = String::from_utf8(lock(&output.0).clone()).expect("utf-8");
        assert!(line.starts_with(r#"{"id":null,"error":"#) && line.contains("model.gguf"), "{line}");
    }

    /// An untrusted file is read by a process without any powers left.
    #[test]
    fn powers_are_given_up_between_opening_the_file_and_reading_it() {
        let path = std::env::temp_dir().join(format!("longhaul-model-{}.gguf", std::process::id()));
        for (answer, expected) in [(Ok(()), None), (Err("no walls".to_owned()), Some("no walls"))] {
            std::fs::write(&path, b"not read yet").expect("ours");
            let output = Shared::default();
            // The open file gets its content here, and its name is removed.
            let confine = |_: BorrowedFd<'_>| {
                std::fs::write(&path, test_model::bytes()).expect("ours");
                std::fs::remove_file(&path).expect("ours");
                answer
            };
            let length = test_model::bytes().len() as u64;
            std::fs::File::options().write(true).open(&path).and_then(|file| file.set_len(length)).expect("ours");
            serve(&path, &LoadOptions::default(), confine, std::io::empty(), output.clone()).expect("it is served");
            let line = String::from_utf8(lock(&output.0).clone()).expect("utf-8");
            let answer: ChildAnswer = serde_json::from_str(line.trim()).expect(&line);
            let AnswerBody::Info(info) = answer.body else { panic!("{line}") };
            assert_eq!(info.unconfined.as_deref(), expected);
        }
    }
}
