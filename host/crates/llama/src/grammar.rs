//! Answers that obey a JSON schema: the tokens that may come next, and the forced ones.
//!
//! The schema comes from a caller that may be hostile, so its grammar is limited in size, and in the work for each
//! token. Nothing is fetched: a reference to another document is refused.

use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};
use llguidance::{Matcher, ParserFactory, panic_utils};
use serde_json::{Value, json};

use crate::LlamaError;
use crate::tokenizer::Tokenizer;

/// States of a grammar's lexer, at about 2 kB each. The compiler's own limit would be 500 MB.
const LEXER_STATES_MAX: usize = 16_000;
/// Symbols of a grammar; a schema of some hundred kilobytes.
const GRAMMAR_SYMBOLS_MAX: usize = 100_000;

/// Memory that one grammar may take, in bytes, with the tables shared by all.
pub(crate) const GRAMMAR_BYTES_MAX: u64 = 48 << 20;

/// Compiles schemas for one vocabulary.
pub(crate) struct Grammars {
    factory: ParserFactory,
}

impl Grammars {
    pub(crate) fn new(tokenizer: Arc<Tokenizer>) -> Result<Self, LlamaError> {
        let build = || {
            let environment: TokEnv = Arc::new(Vocabulary::new(tokenizer));
            let mut factory = ParserFactory::new_simple(&environment)?;
            factory.quiet();
            let limits = factory.limits_mut();
            limits.max_lexer_states = LEXER_STATES_MAX;
            limits.max_grammar_size = GRAMMAR_SYMBOLS_MAX;
            limits.verbose_errors = false;
            Ok(factory)
        };
        let factory = panic_utils::catch_unwind(std::panic::AssertUnwindSafe(build));
        let factory = factory.map_err(bad_schema)?;
        Ok(Grammars { factory })
    }

    /// The grammar of the schema, at its beginning.
    pub(crate) fn start(&self, schema: &Value) -> Result<Grammar, LlamaError> {
        let grammar = TopLevelGrammar::from_json_schema(with_fixed_whitespace(schema));
        let parser = panic_utils::catch_unwind(std::panic::AssertUnwindSafe(|| self.factory.create_parser(grammar)));
        let parser = parser.map_err(bad_schema)?;
        let matcher = Matcher::new(Ok(parser));
        Ok(Grammar { matcher })
    }
}

/// The state of one answer.
pub(crate) struct Grammar {
    matcher: Matcher,
}

impl Grammar {
    /// The tokens that may come next; only the end's once the answer is complete.
    pub(crate) fn allowed(&mut self) -> Result<SimpleVob, LlamaError> {
        self.matcher.compute_mask_or_eos().map_err(bad_schema)
    }

    /// Goes on by one token.
    pub(crate) fn accept(&mut self, id: u32) -> Result<(), LlamaError> {
        self.matcher.consume_token(id).map_err(bad_schema)
    }

    /// Goes on by the tokens that must come next, which then need not be computed.
    pub(crate) fn accept_forced(&mut self) -> Vec<u32> {
        self.matcher.consume_ff_tokens()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.matcher.is_stopped()
    }
}

/// The tokenizer in the form that the grammar's compiler needs.
struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl Vocabulary {
    fn new(tokenizer: Arc<Tokenizer>) -> Self {
        let words = tokenizer.words(TokTrie::SPECIAL_TOKEN_MARKER);
        let count = u32::try_from(words.len()).unwrap_or(u32::MAX);
        let trie = TokTrie::from(&TokRxInfo::new(count, tokenizer.end()), &words);
        Vocabulary { tokenizer, trie }
    }
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| self.tokenizer.encode(text))
    }
}

/// The schema with the spaces that models write and no others: a small model that may put blanks
/// between any two symbols does so until its tokens are spent.
fn with_fixed_whitespace(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        let layout = json!({
            "whitespace_flexible": false,
            "item_separator": ", ",
            "key_separator": ": ",
        });
        object.insert("x-guidance".into(), layout);
    }
    schema
}

fn bad_schema(error: impl std::fmt::Display) -> LlamaError {
    let reason = error.to_string();
    LlamaError::BadSchema { reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_model;

    fn grammars() -> Grammars {
        Grammars::new(Arc::new(test_model::tokenizer())).expect("grammars")
    }

    #[test]
    fn what_must_come_is_forced_and_what_may_come_is_allowed() {
        let schema = json!({
            "type": "object",
            "properties": {"hello": {"enum": ["a", "b"]}},
            "required": ["hello"],
            "additionalProperties": false,
        });
        let tokenizer = test_model::tokenizer();
        let mut grammar = grammars().start(&schema).expect("start");
        let forced = grammar.accept_forced();
        assert_eq!(forced, tokenizer.encode("{\"hello\": \""));
        let allowed = grammar.allowed().expect("allowed");
        let letters: Vec<u32> = ["a", "b"].iter().flat_map(|a| tokenizer.encode(a)).collect();
        assert_eq!(allowed.to_list(), letters);
        grammar.accept(letters[0]).expect("accept");
        assert_eq!(grammar.accept_forced(), tokenizer.encode("\"}"));
        assert!(grammar.is_complete());
    }

    #[test]
    fn a_schema_that_cannot_be_obeyed_is_refused() {
        for schema in [
            json!({"type": "nothing"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"type": "string", "pattern": "("}),
            json!(false),
            json!(3),
        ] {
            let Err(error) = grammars().start(&schema) else {
                panic!("should refuse {schema}");
            };
            assert!(matches!(error, LlamaError::BadSchema { .. }), "{schema}: {error}");
        }
    }
}
