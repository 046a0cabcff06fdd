//! A loaded model and its completions.
//!
//! One model, one completion at a time, blocking: a caller that needs more starts another child process. The context is
//! sized by the memory that the model may use, at load, so that no completion fails later for lack of it.

use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::LlamaError;
use crate::gguf::Gguf;
use crate::grammar::{GRAMMAR_BYTES_MAX, Grammar, Grammars};
use crate::output::Output;
use crate::protocol::{Completion, CompletionReply, CompletionStop, Info};
use crate::sampler::Sampler;
use crate::session::{Session, Sessions};
use crate::template::Template;
use crate::tokenizer::Tokenizer;
use crate::transformer::{BATCH_TOKENS, Config, Transformer};

/// The least useful context: a smaller one holds no useful conversation, so loading is refused.
const CONTEXT_TOKENS_MIN: usize = 512;

/// Limits of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// Longest context, prompt and answer together, in tokens. Default 8 192.
    ///
    /// The context is the smallest of this, the model's training context, and the size that fits into
    /// `memory_bytes_max`; see [`LoadedModel::info`].
    pub context_tokens_max: usize,
    /// Memory for weights, sessions and work space, in bytes. Default 1 GiB.
    ///
    /// An estimate made at load, not a limit that the system enforces; it does not include the program itself and the
    /// buffers of `serve`. Caches of finished turns fill the rest of the memory.
    ///
    /// # Errors
    /// [`LlamaError::OutOfMemory`] from [`LoadedModel::load`] when not even 512 tokens fit.
    pub memory_bytes_max: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions { context_tokens_max: 8_192, memory_bytes_max: 1 << 30 }
    }
}

/// A model that is ready to answer.
pub struct LoadedModel {
    transformer: Transformer,
    tokenizer: Arc<Tokenizer>,
    template: Template,
    /// Made at the first schema: the tables cost a tenth of a second.
    grammars: Option<Grammars>,
    sessions: Sessions,
    context_tokens: usize,
    info: Info,
}

impl LoadedModel {
    /// Loads a GGUF file: a plain Llama with a `smollm` or `gpt-2` tokenizer and a chat template.
    ///
    /// # Errors
    /// [`LlamaError::BadFile`] for a file that is damaged, [`LlamaError::Unsupported`] for one of
    /// another kind, [`LlamaError::OutOfMemory`] for one that does not fit.
    pub fn load(path: &Path, options: &LoadOptions) -> Result<Self, LlamaError> {
        LoadedModel::load_confined(path, options, |_| Ok(()))
    }

    /// [`LoadedModel::load`], with `confine` between opening the file and reading its first byte: the file is
    /// untrusted. If that fails the model is loaded nevertheless, and [`LoadedModel::info`] has the reason.
    pub(crate) fn load_confined(
        path: &Path,
        options: &LoadOptions,
        confine: impl FnOnce(BorrowedFd<'_>) -> Result<(), String>,
    ) -> Result<Self, LlamaError> {
        let failed = |source| LlamaError::Io { what: path.display().to_string(), source };
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let unconfined = confine(file.as_fd()).err();
        let mut model = LoadedModel::read(BufReader::new(file), bytes, options)?;
        model.info.unconfined = unconfined;
        Ok(model)
    }

    /// [`LoadedModel::load`] from an open file that is `file_bytes` long.
    pub(crate) fn read(mut file: impl Read + Seek, file_bytes: u64, options: &LoadOptions) -> Result<Self, LlamaError> {
        let gguf = Gguf::read(&mut file, file_bytes)?;
        let tokenizer = Tokenizer::read(&gguf)?;
        let template = Template::new(gguf.string("tokenizer.chat_template")?)?;
        let config = Config::read(&gguf, tokenizer.vocabulary())?;
        let budget = Budget::new(&config, &gguf, &tokenizer, options)?;
        let info = Info {
            name: gguf.string("general.name").unwrap_or_default().to_owned(),
            context_tokens_max: u32::try_from(budget.context_tokens).unwrap_or(u32::MAX),
            memory_bytes_max: options.memory_bytes_max,
            unconfined: None,
        };
        Ok(LoadedModel {
            transformer: Transformer::load(config, &gguf, &mut file, budget.context_tokens)?,
            tokenizer: Arc::new(tokenizer),
            template,
            grammars: None,
            sessions: Sessions::new(budget.session_bytes),
            context_tokens: budget.context_tokens,
            info,
        })
    }

    /// The loaded model, and the context that its memory allows.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// The token ids of a text in which special tokens stay text.
    pub fn tokenize(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text)
    }

    /// Completes a conversation, and passes on the text as it comes.
    ///
    /// `on_text` gets whole characters and never a part of a stop text; when it breaks, or when
    /// `cancel` becomes true, the completion ends with [`CompletionStop::Cancelled`], at the latest
    /// after 128 tokens of prompt or one of answer. What was computed stays in the session.
    ///
    /// # Errors
    /// [`LlamaError::PromptTooLong`], [`LlamaError::BadSchema`], [`LlamaError::BadRequest`];
    /// [`LlamaError::Compute`] for a damaged model. The session is then forgotten.
    pub fn complete(
        &mut self,
        request: &Completion,
        cancel: &AtomicBool,
        on_text: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<CompletionReply, LlamaError> {
        let sampler = Sampler::new(request)?;
        let grammar = self.grammar(request)?;
        let prompt = self.prompt(request)?;
        let mut session = self.sessions.take(&request.session);
        let cached = session.reuse(&prompt);
        let mut answer =
            Answer { output: Output::new(&request.stop), tokens: 0, tokens_max: request.output_tokens_max, on_text };
        let mut turn = Turn {
            transformer: &self.transformer,
            tokenizer: &self.tokenizer,
            sessions: &mut self.sessions,
            session: &mut session,
            context_tokens: self.context_tokens,
            cancel,
            sampler,
            grammar,
        };
        let stop_reason = turn.run(&prompt[cached..], &mut answer)?;
        self.sessions.put(session, self.transformer.config());
        Ok(CompletionReply {
            output_tokens: answer.tokens,
            text: answer.finish(),
            stop_reason,
            prompt_tokens: u32::try_from(prompt.len()).unwrap_or(u32::MAX),
            cached_tokens: u32::try_from(cached).unwrap_or(u32::MAX),
        })
    }

    fn grammar(&mut self, request: &Completion) -> Result<Option<Grammar>, LlamaError> {
        let any_object = json!({"type": "object"});
        let schema = match &request.schema {
            Some(schema) => schema,
            None if request.json => &any_object,
            None => return Ok(None),
        };
        if request.prefill.is_some() {
            let reason = "a `prefill` is not under the schema; leave one of them out".into();
            return Err(LlamaError::BadRequest { reason });
        }
        let grammars = match self.grammars.take() {
            Some(grammars) => grammars,
            None => Grammars::new(Arc::clone(&self.tokenizer))?,
        };
        let grammar = grammars.start(schema);
        self.grammars = Some(grammars);
        grammar.map(Some)
    }

    fn prompt(&self, request: &Completion) -> Result<Vec<u32>, LlamaError> {
        let prefill = request.prefill.as_deref();
        let prompt = self.template.prompt(&request.messages, prefill, &self.tokenizer)?;
        if prompt.is_empty() {
            let reason = "the prompt is empty; add a message".into();
            return Err(LlamaError::BadRequest { reason });
        }
        if prompt.len() >= self.context_tokens {
            return Err(LlamaError::PromptTooLong {
                prompt_tokens: prompt.len(),
                context_tokens_max: self.context_tokens,
            });
        }
        Ok(prompt)
    }
}

/// Division of the memory.
struct Budget {
    context_tokens: usize,
    session_bytes: u64,
}

impl Budget {
    fn new(config: &Config, gguf: &Gguf, tokenizer: &Tokenizer, options: &LoadOptions) -> Result<Self, LlamaError> {
        let fixed = config.weight_bytes(gguf) + tokenizer.memory_bytes() + batch_bytes(config) + GRAMMAR_BYTES_MAX;
        let each = config.context_token_bytes() + config.cache_token_bytes();
        let free = options.memory_bytes_max.saturating_sub(fixed);
        let fitting = usize::try_from(free / each).unwrap_or(usize::MAX);
        if fitting < CONTEXT_TOKENS_MIN {
            return Err(LlamaError::OutOfMemory {
                bytes_needed: fixed + each * CONTEXT_TOKENS_MIN as u64,
                bytes_max: options.memory_bytes_max,
                context_tokens_min: CONTEXT_TOKENS_MIN,
            });
        }
        let context_tokens = fitting.min(options.context_tokens_max).min(config.context_tokens);
        Ok(Budget { context_tokens, session_bytes: free - context_tokens as u64 * config.context_token_bytes() })
    }
}

/// Bytes of one batch's hidden states, about a dozen of each width, and of the logits.
fn batch_bytes(config: &Config) -> u64 {
    let token = 8 * config.width + 4 * config.inner_width;
    (4 * (BATCH_TOKENS * token + 4 * config.vocabulary)) as u64
}

/// A completion at work.
struct Turn<'m> {
    transformer: &'m Transformer,
    tokenizer: &'m Tokenizer,
    sessions: &'m mut Sessions,
    session: &'m mut Session,
    context_tokens: usize,
    cancel: &'m AtomicBool,
    sampler: Sampler,
    grammar: Option<Grammar>,
}

impl Turn<'_> {
    fn run(&mut self, prompt: &[u32], answer: &mut Answer<'_>) -> Result<CompletionStop, LlamaError> {
        let mut batch = prompt.to_vec();
        let forced = self.forced();
        let mut ended = answer.push(&forced, self.tokenizer);
        batch.extend(forced);
        loop {
            if let Some(reason) = ended {
                return Ok(reason);
            }
            let tokens = self.session.ids.len() + batch.len();
            if answer.is_full() || tokens > self.context_tokens {
                return Ok(CompletionStop::Length);
            }
            let Some(logits) = self.append(&batch)? else {
                return Ok(CompletionStop::Cancelled);
            };
            batch = self.next(&logits)?;
            if batch.is_empty() {
                return Ok(CompletionStop::End);
            }
            ended = answer.push(&batch, self.tokenizer);
            if ended.is_none() && self.grammar.as_ref().is_some_and(Grammar::is_complete) {
                ended = Some(CompletionStop::End);
            }
        }
    }

    /// Computes the tokens and returns the logits after the last, or `None` when cancelled.
    fn append(&mut self, ids: &[u32]) -> Result<Option<Vec<f32>>, LlamaError> {
        let mut logits = None;
        for batch in ids.chunks(BATCH_TOKENS) {
            if self.cancel.load(Ordering::Relaxed) {
                return Ok(None);
            }
            self.reserve(batch.len())?;
            logits = Some(self.transformer.forward(batch, &mut self.session.cache)?);
            self.session.ids.extend(batch);
        }
        Ok(logits)
    }

    fn reserve(&mut self, more: usize) -> Result<(), LlamaError> {
        let (config, cache) = (self.transformer.config(), &mut self.session.cache);
        let tokens = cache.tokens() + more;
        let room = cache.room_for(tokens, self.context_tokens) as u64;
        self.sessions.make_room(room * config.cache_token_bytes(), config);
        cache.reserve(tokens, self.context_tokens, config)
    }

    /// The next token and those that must follow it; nothing when the answer is over.
    ///
    /// Any special token ends the answer: a model that opens a new turn has finished its own.
    fn next(&mut self, logits: &[f32]) -> Result<Vec<u32>, LlamaError> {
        let chosen = match &mut self.grammar {
            None => self.sampler.choose(logits, |_| true)?,
            Some(grammar) => {
                let allowed = grammar.allowed()?;
                self.sampler.choose(logits, |id| allowed.is_allowed(id))?
            }
        };
        if self.tokenizer.is_special(chosen) {
            return Ok(Vec::new());
        }
        if let Some(grammar) = &mut self.grammar {
            grammar.accept(chosen)?;
        }
        let mut batch = vec![chosen];
        batch.extend(self.forced());
        Ok(batch)
    }

    fn forced(&mut self) -> Vec<u32> {
        let grammar = self.grammar.as_mut();
        grammar.map(Grammar::accept_forced).unwrap_or_default()
    }
}

/// The answer so far, as the caller has it.
struct Answer<'c> {
    output: Output,
    tokens: u32,
    tokens_max: u32,
    on_text: &'c mut dyn FnMut(&str) -> ControlFlow<()>,
}

impl Answer<'_> {
    /// Passes on the tokens' text; returns the reason if the answer ends with one of them.
    fn push(&mut self, ids: &[u32], tokenizer: &Tokenizer) -> Option<CompletionStop> {
        for id in ids {
            if self.is_full() {
                return Some(CompletionStop::Length);
            }
            self.tokens += 1;
            let text = self.output.push(tokenizer.text_bytes(*id));
            if !text.is_empty() && (self.on_text)(text).is_break() {
                return Some(CompletionStop::Cancelled);
            }
            if self.output.is_stopped() {
                return Some(CompletionStop::End);
            }
        }
        None
    }

    fn is_full(&self) -> bool {
        self.tokens >= self.tokens_max
    }

    /// Passes on the held-back text. The caller cannot stop it any more.
    fn finish(mut self) -> String {
        let text = self.output.finish();
        if !text.is_empty() {
            let _ = (self.on_text)(text);
        }
        self.output.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{ChatMessage, ChatRole};
    use crate::test_model;

    fn request(text: &str) -> Completion {
        Completion {
            messages: vec![ChatMessage::new(ChatRole::User, text)],
            output_tokens_max: 24,
            ..Completion::default()
        }
    }

    /// The reply; panics when the streamed text is not the reply's.
    #[track_caller]
    fn complete(model: &mut LoadedModel, request: &Completion) -> CompletionReply {
        let mut streamed = String::new();
        let reply = model
            .complete(request, &AtomicBool::new(false), &mut |text| {
                streamed.push_str(text);
                ControlFlow::Continue(())
            })
            .expect("complete");
        assert_eq!(streamed, reply.text);
        reply
    }

    #[test]
    fn the_same_request_gives_the_same_text_with_and_without_a_cache() {
        let mut model = test_model::model();
        let sampled = Completion { session: "s".into(), temperature: 0.8, seed: 3, ..request("hello") };
        let first = complete(&mut model, &sampled);
        let second = complete(&mut model, &sampled);
        assert_eq!(first.text, second.text);
        assert_eq!((first.cached_tokens, first.prompt_tokens - 1), (0, second.cached_tokens));
        let other = complete(&mut model, &Completion { seed: 4, ..sampled });
        assert_ne!(first.text, other.text);
    }

    #[test]
    fn an_answer_under_a_schema_obeys_it_whatever_the_model_wants() {
        let schema = json!({
            "type": "object",
            "properties": {"hello": {"enum": ["a", "b"]}, "n": {"type": "boolean"}},
            "required": ["hello", "n"],
            "additionalProperties": false,
        });
        let constrained = Completion { schema: Some(schema), ..request("x") };
        let constrained = Completion { output_tokens_max: 60, ..constrained };
        let reply = complete(&mut test_model::model(), &constrained);
        let value: serde_json::Value = serde_json::from_str(&reply.text).expect("json");
        assert!(value["n"].is_boolean() && value["hello"].is_string(), "{value}");
        assert_eq!(reply.stop_reason, CompletionStop::End);
    }

    #[test]
    fn an_answer_ends_at_its_limits() {
        let mut model = test_model::model();
        let short = Completion { output_tokens_max: 3, ..request("x") };
        let reply = complete(&mut model, &short);
        assert_eq!((reply.stop_reason, reply.output_tokens), (CompletionStop::Length, 3));
        let none = Completion { output_tokens_max: 0, ..request("x") };
        assert_eq!(complete(&mut model, &none).text, "");

        let long = Completion { output_tokens_max: 9_999, ..request("x") };
        let reply = complete(&mut model, &Completion { temperature: 1.0, ..long });
        assert!(reply.prompt_tokens + reply.output_tokens <= 1_025, "{reply:?}");
    }

    #[test]
    fn a_cancelled_completion_keeps_what_it_has() {
        let mut model = test_model::model();
        let request = Completion { session: "s".into(), ..request(&"hello ".repeat(100)) };
        let nothing = &mut |_: &str| ControlFlow::Continue(());
        let reply = model.complete(&request, &AtomicBool::new(true), nothing);
        assert_eq!(reply.expect("reply").stop_reason, CompletionStop::Cancelled);
        let broken = model.complete(&request, &AtomicBool::new(false), &mut |_| ControlFlow::Break(())).expect("reply");
        assert_eq!(broken.stop_reason, CompletionStop::Cancelled);
        assert!(!broken.text.is_empty());
        assert_eq!(complete(&mut model, &request).cached_tokens, broken.prompt_tokens - 1);
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_its_kind() {
        let mut model = test_model::model();
        let mut refuse = |request: &Completion| {
            let nothing = &mut |_: &str| ControlFlow::Continue(());
            let error = model.complete(request, &AtomicBool::new(false), nothing);
            format!("{:?}", error.expect_err("refuse").kind())
        };
        let too_long = request(&"hello ".repeat(600));
        assert_eq!(refuse(&too_long), "PromptTooLong");
        let both = Completion { prefill: Some("{".into()), json: true, ..request("x") };
        assert_eq!(refuse(&both), "BadRequest");
        let schema = Some(json!({"$ref": "elsewhere"}));
        assert_eq!(refuse(&Completion { schema, ..request("x") }), "BadSchema");
        assert_eq!(refuse(&Completion { top_p: 2.0, ..request("x") }), "BadRequest");
    }

    #[test]
    fn the_context_shrinks_with_the_memory_and_then_the_model_is_refused() {
        let bytes = test_model::bytes();
        let load = |memory_bytes_max: u64| {
            let options = LoadOptions { memory_bytes_max, ..LoadOptions::default() };
            LoadedModel::read(std::io::Cursor::new(&bytes), bytes.len() as u64, &options)
        };
        assert_eq!(load(1 << 30).expect("load").info().context_tokens_max, 1_024);
        let Err(LlamaError::OutOfMemory { bytes_needed, .. }) = load(1 << 20) else {
            panic!("a megabyte should not be enough");
        };
        assert_eq!(load(bytes_needed).expect("load").info().context_tokens_max, 512);
        assert!(load(bytes_needed - 1).is_err());
    }

    #[test]
    fn a_damaged_file_is_an_error_and_no_panic() {
        let whole = test_model::bytes();
        let options = LoadOptions::default();
        let read =
            |bytes: &[u8]| LoadedModel::read(std::io::Cursor::new(bytes), bytes.len() as u64, &options).map(drop);
        assert!(read(&whole).is_ok());
        assert!(read(&whole[..whole.len() - 1]).is_err());
        // A flipped byte may be harmless (a weight); it may never be a panic.
        for at in (0..test_model::HEADER_BYTES_PROBED).step_by(3) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            let _ = read(&damaged);
        }
    }
}
