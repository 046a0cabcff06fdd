//! An upper bound of a text's tokens, for reservations and caps.
//!
//! A tokeniser of bytes makes no token of less than one byte (byte pair encoding over UTF-8: Sennrich et al. 2016,
//! Radford et al. 2019; `SentencePiece` falls back to bytes), so what is not ASCII counts one token a byte, which
//! nothing can be above. ASCII is counted by runs, since tokenisers cut a text into runs of letters, digits and signs
//! before they look for pairs: that is above what `cl100k_base` and `o200k_base` make of prose, code, JSON, base64 and
//! hex (the table of the test), and about twice what they make of English; words of random letters may be a tenth
//! above. When a context is cut back is decided by [`super::text_tokens`], which is nearer to the truth and may be
//! below it.

use super::{Message, MessagePart, ModelRequest, OfferedTool, ReplyFormat};

/// Length from which on a row of letters counts as no word.
const WORD_BYTES_MAX: u64 = 16;

/// Tokens of a picture: above the most that Anthropic (1 600) and OpenAI (2 489, for models that count patches) state.
const IMAGE_TOKENS_MOST: u64 = 2_500;

/// Tokens of the frame of a message, a call, an answer or an offered function.
const FRAME_TOKENS_MOST: u64 = 16;

/// The most tokens that a text is expected to have.
#[must_use]
pub fn text_tokens_most(text: &str) -> u64 {
    text.as_bytes().chunk_by(|a, b| Run::of(*a) == Run::of(*b)).map(run_tokens).sum()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Small,
    Capital,
    Space,
    /// Digits, signs, line feeds, and all that is not ASCII.
    Single,
}

impl Run {
    fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Small,
            b'A'..=b'Z' => Self::Capital,
            b' ' => Self::Space,
            _ => Self::Single,
        }
    }
}

fn run_tokens(run: &[u8]) -> u64 {
    let bytes = run.len() as u64;
    match run.first().map_or(Run::Single, |first| Run::of(*first)) {
        Run::Small if bytes <= WORD_BYTES_MAX => bytes.div_ceil(2),
        Run::Small | Run::Capital => (bytes * 2).div_ceil(3),
        // One space belongs to the word after it.
        Run::Space if bytes == 1 => 0,
        Run::Space => bytes.div_ceil(2),
        Run::Single => bytes,
    }
}

impl Message {
    /// The most tokens that it is expected to have.
    #[must_use]
    pub fn tokens_most(&self) -> u64 {
        let part = |part: &MessagePart| match part {
            MessagePart::Text(text) => text_tokens_most(text),
            MessagePart::Image { .. } => IMAGE_TOKENS_MOST,
            MessagePart::Requested(call) => {
                let name = text_tokens_most(&call.tool) + text_tokens_most(&call.function) + text_tokens_most(&call.id);
                text_tokens_most(&call.arguments) + name + FRAME_TOKENS_MOST
            }
            MessagePart::Answered { id, output, .. } => {
                text_tokens_most(output) + text_tokens_most(id) + FRAME_TOKENS_MOST
            }
            MessagePart::Thought(thought) => {
                text_tokens_most(&thought.text) + thought.signature.as_deref().map_or(0, text_tokens_most)
            }
        };
        FRAME_TOKENS_MOST + self.parts.iter().map(part).sum::<u64>()
    }
}

impl ModelRequest {
    /// The most input tokens that are expected, for reservations and rates.
    #[must_use]
    pub fn tokens_most(&self) -> u64 {
        let said: u64 = self.messages.iter().map(Message::tokens_most).sum();
        let offered: u64 = self.tools.iter().map(offered_tokens).sum();
        let schema = if let ReplyFormat::Schema(schema) = &self.format { schema.to_string() } else { String::new() };
        let prefill = self.prefill.as_deref().unwrap_or_default();
        let rest = [self.system.as_str(), &schema, prefill].map(text_tokens_most).iter().sum::<u64>();
        FRAME_TOKENS_MOST + said + offered + rest
    }
}

fn offered_tokens(tool: &OfferedTool) -> u64 {
    let texts = [&tool.tool, &tool.function, &tool.description];
    let texts: u64 = texts.into_iter().map(|text| text_tokens_most(text)).sum();
    texts + text_tokens_most(&tool.parameters.to_string()) + FRAME_TOKENS_MOST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{MessageRole, text_tokens};

    /// Texts with their token counts by `cl100k_base` and `o200k_base`, whichever is more; measured with the package
    /// `gpt-tokenizer` 4.0.0.
    const COUNTED: [(&str, u64); 11] = [
        ("A run that is killed continues where it was: what was done is not done again.", 18),
        ("fn put(&self, book: &mut Book, more: &Spent) -> Batch { book.total = book.total.plus(*more); }", 30),
        (
            "{\"tasks\": [{\"id\": \"a\", \"agent_id\": \"one\", \"instruction\": \"do a; put\", \"depends_on\": []}]}",
            32,
        ),
        ("aGVsbG8gd29ybGQgYW5kIHNvbWUgbW9yZSBieXRlcyBmb3IgaXQ+/w==", 39),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 43),
        ("长期运行的代理程序在沙箱中执行，每个效果都写入日志。", 25),
        ("長時間動くエージェントをサンドボックスで実行し、記録します。", 28),
        ("오래 실행되는 에이전트를 샌드박스에서 실행합니다.", 21),
        ("Долгоживущие агенты работают в песочнице.", 22),
        ("เอเจนต์ที่ทำงานยาวนานในแซนด์บ็อกซ์", 35),
        ("😀🚀🧪👩‍🔬🇩🇪", 22),
    ];

    #[test]
    fn no_text_of_any_script_has_more_tokens_than_are_held_for_it() {
        for (text, counted) in COUNTED {
            let most = text_tokens_most(text);
            assert!(most >= counted, "`{text}`: {most} of {counted}");
            assert!(most <= text.len() as u64, "`{text}`: {most}");
        }
        assert_eq!(text_tokens_most(""), 0);
    }

    /// A quarter of the characters used to be reserved for it.
    #[test]
    fn a_request_in_chinese_holds_more_than_a_quarter_of_its_characters() {
        let text = COUNTED[5].0;
        let request = ModelRequest {
            model: "m".into(),
            system: text.into(),
            messages: vec![Message::text(MessageRole::User, text)],
            tools: Vec::new(),
            format: ReplyFormat::Text,
            prefill: None,
            stop: Vec::new(),
            output_tokens_max: 1,
            temperature: None,
            seed: None,
        };
        let counted = 2 * COUNTED[5].1;
        assert!(2 * text_tokens(text) < counted && request.tokens_most() >= counted, "{}", request.tokens_most());
    }
}
