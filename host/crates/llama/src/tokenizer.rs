//! Text to token ids and back, by byte-pair encoding, from the vocabulary and merges of a GGUF file.
//!
//! Two ways of cutting text before merging are known: `gpt-2`, and `smollm`, which first puts each
//! digit alone. Another name is refused, since a wrong cut gives a model that is quietly worse.
//! Special tokens are never found in text here: the caller, who knows which text is its own,
//! asks for them ([`Tokenizer::special_at`]).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use regex::Regex;

use crate::LlamaError;
use crate::gguf::Gguf;

/// Tokens of a vocabulary. The grammar's trie holds ids below 2^24.
const VOCABULARY_MAX: usize = 1 << 20;
/// Bytes of all tokens together. The grammar's trie holds 2^22 nodes, about one a byte.
const VOCABULARY_BYTES_MAX: usize = 4_000_000;
/// Bytes of one token. The grammar's trie holds 2^10 levels.
const TOKEN_BYTES_MAX: usize = 1_000;

/// The GPT-2 cut, without the look-ahead that this regex engine lacks; see [`Cut::words`].
const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";

/// A model's vocabulary.
#[derive(Debug)]
pub(crate) struct Tokenizer {
    /// The bytes of each token; a special token's are its name.
    bytes: Vec<Vec<u8>>,
    /// Tokens that stand for structure, longest name first.
    specials: Vec<(String, u32)>,
    is_special: Vec<bool>,
    /// [`GONE`] for a byte that the vocabulary lacks.
    byte_ids: [u32; 256],
    merges: Merges,
    cut: Cut,
    end: u32,
    begin: Option<u32>,
}

impl Tokenizer {
    pub(crate) fn read(gguf: &Gguf) -> Result<Self, LlamaError> {
        let model = gguf.string("tokenizer.ggml.model")?;
        if model != "gpt2" {
            let what = format!("the tokenizer `{model}`");
            return Err(LlamaError::unsupported(what));
        }
        let tokens = gguf.strings("tokenizer.ggml.tokens")?;
        let kinds = gguf.integers("tokenizer.ggml.token_type")?;
        check_sizes(tokens, kinds)?;
        let end = gguf
            .token_id("tokenizer.ggml.eos_token_id", tokens.len())?
            .ok_or_else(|| LlamaError::bad_file("it names no token that ends an answer"))?;
        let begin = match gguf.flag("tokenizer.ggml.add_bos_token")? {
            true => gguf.token_id("tokenizer.ggml.bos_token_id", tokens.len())?,
            false => None,
        };
        Tokenizer::new(
            tokens,
            kinds,
            gguf.strings("tokenizer.ggml.merges")?,
            Cut::named(gguf.string("tokenizer.ggml.pre")?)?,
            end,
            begin,
        )
    }

    fn new(
        tokens: &[String],
        kinds: &[i64],
        merges: &[String],
        cut: Cut,
        end: u32,
        begin: Option<u32>,
    ) -> Result<Self, LlamaError> {
        let is_special: Vec<bool> = kinds.iter().map(|kind| is_special_kind(*kind)).collect();
        let mut specials = Vec::new();
        let mut bytes = Vec::with_capacity(tokens.len());
        let mut ids = HashMap::with_capacity(tokens.len());
        for ((id, token), special) in (0_u32..).zip(tokens).zip(&is_special) {
            if *special {
                specials.push((token.clone(), id));
                bytes.push(token.clone().into_bytes());
            } else {
                bytes.push(spelled_bytes(token)?);
                ids.insert(token.as_str(), id);
            }
        }
        specials.retain(|(name, _)| !name.is_empty());
        specials.sort_by_key(|(name, id)| (Reverse(name.len()), *id));
        let byte_ids = byte_ids(&ids);
        let merges = read_merges(merges, &ids)?;
        Ok(Tokenizer { bytes, specials, is_special, byte_ids, merges, cut, end, begin })
    }

    /// The ids of `text`, in which nothing is special.
    pub(crate) fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        for word in self.cut.words(text) {
            self.merge(word.as_bytes(), &mut ids);
        }
        ids
    }

    /// The special token whose name `text` starts with, and the name's length.
    pub(crate) fn special_at(&self, text: &str) -> Option<(u32, usize)> {
        self.specials.iter().find(|(name, _)| text.starts_with(name)).map(|(name, id)| (*id, name.len()))
    }

    /// The bytes of a token of text; nothing for a special token.
    pub(crate) fn text_bytes(&self, id: u32) -> &[u8] {
        match self.bytes.get(id as usize) {
            Some(bytes) if !self.is_special(id) => bytes,
            _ => &[],
        }
    }

    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.is_special.get(id as usize).copied().unwrap_or(false)
    }

    /// The name of a token, as templates print it.
    pub(crate) fn name(&self, id: u32) -> String {
        let bytes = self.bytes.get(id as usize).map_or(&[][..], Vec::as_slice);
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// The token that ends an answer.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// The token that every prompt starts with, if the file asks for one.
    pub(crate) fn begin(&self) -> Option<u32> {
        self.begin
    }

    pub(crate) fn vocabulary(&self) -> usize {
        self.bytes.len()
    }

    /// All tokens as the grammar wants them: special ones marked by a byte that no text has.
    pub(crate) fn words(&self, special_marker: u8) -> Vec<Vec<u8>> {
        let mark = |(bytes, special): (&Vec<u8>, &bool)| match special {
            true => [&[special_marker][..], bytes].concat(),
            false => bytes.clone(),
        };
        self.bytes.iter().zip(&self.is_special).map(mark).collect()
    }

    /// Bytes that the vocabulary and the grammar's trie take at most, as an estimate: two hash
    /// tables of short keys, the strings, and a trie of about five nodes a token.
    pub(crate) fn memory_bytes(&self) -> u64 {
        256 * self.vocabulary() as u64
    }

    /// Merges one word. A heap instead of a scan: a word without a blank can be a megabyte long.
    fn merge(&self, word: &[u8], out: &mut Vec<u32>) {
        let mut chain = Chain::new(word.iter().map(|byte| self.byte_ids[usize::from(*byte)]));
        let mut heap = BinaryHeap::new();
        let offer = |chain: &Chain, left: usize, heap: &mut BinaryHeap<_>| {
            let Some(pair) = chain.pair(left) else { return };
            if let Some((rank, merged)) = self.merges.get(&pair) {
                heap.push(Reverse((*rank, left, pair, *merged)));
            }
        };
        for left in 0..word.len() {
            offer(&chain, left, &mut heap);
        }
        while let Some(Reverse((_, left, pair, merged))) = heap.pop() {
            // The pair may be gone: one of its halves has merged with another neighbour.
            if chain.pair(left) != Some(pair) {
                continue;
            }
            chain.join(left, merged);
            offer(&chain, left, &mut heap);
            if let Some(before) = chain.before(left) {
                offer(&chain, before, &mut heap);
            }
        }
        out.extend(chain.ids());
    }
}

/// The rank and the result of merging two neighbours; the lowest rank merges first.
type Merges = HashMap<(u32, u32), (u32, u32)>;

/// The rule that cuts text into words before merging.
#[derive(Debug)]
struct Cut {
    word: Regex,
    digits_alone: bool,
}

impl Cut {
    fn named(name: &str) -> Result<Self, LlamaError> {
        let digits_alone = match name {
            "smollm" => true,
            "gpt-2" => false,
            other => {
                let what = format!("the text cut `{other}`");
                return Err(LlamaError::unsupported(what));
            }
        };
        let word = Regex::new(GPT2).map_err(|error| LlamaError::Compute { reason: error.to_string() })?;
        Ok(Cut { word, digits_alone })
    }

    fn words<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let mut words = Vec::new();
        if self.digits_alone {
            for span in text.split_inclusive(char::is_numeric) {
                let digit = span.chars().next_back().filter(|last| last.is_numeric());
                let (before, digit) = span.split_at(span.len() - digit.map_or(0, char::len_utf8));
                self.push_words(before, &mut words);
                words.extend(Some(digit).filter(|digit| !digit.is_empty()));
            }
        } else {
            self.push_words(text, &mut words);
        }
        words
    }

    /// GPT-2 ends blanks before the last one when a word follows (`\s+(?!\S)`), so that the word
    /// keeps it: "a  b" is "a", " ", " b".
    fn push_words<'t>(&self, text: &'t str, words: &mut Vec<&'t str>) {
        let mut start = 0;
        while let Some(found) = self.word.find_at(text, start) {
            let mut end = found.end();
            let last = found.as_str().chars().next_back();
            if let Some(last) = last.filter(|last| last.is_whitespace() && end < text.len()) {
                let shorter = end - last.len_utf8();
                end = if shorter > found.start() { shorter } else { end };
            }
            words.push(&text[found.start()..end]);
            start = end;
        }
    }
}

/// The tokens of a word as a doubly linked list inside vectors.
struct Chain {
    ids: Vec<u32>,
    next: Vec<usize>,
    previous: Vec<usize>,
}

/// Marks a link to nothing, and an id that was merged into its neighbour or never was.
const NONE: usize = usize::MAX;
const GONE: u32 = u32::MAX;

impl Chain {
    fn new(ids: impl Iterator<Item = u32>) -> Self {
        let ids: Vec<u32> = ids.collect();
        let next = (1..=ids.len()).map(|next| if next < ids.len() { next } else { NONE }).collect();
        let previous = (0..ids.len()).map(|at| at.wrapping_sub(1)).collect();
        Chain { ids, next, previous }
    }

    fn pair(&self, left: usize) -> Option<(u32, u32)> {
        let right = self.next[left];
        (self.ids[left] != GONE && right != NONE).then(|| (self.ids[left], self.ids[right]))
    }

    fn before(&self, at: usize) -> Option<usize> {
        Some(self.previous[at]).filter(|previous| *previous != NONE)
    }

    fn join(&mut self, left: usize, merged: u32) {
        let right = self.next[left];
        let after = self.next[right];
        self.ids[left] = merged;
        self.ids[right] = GONE;
        self.next[left] = after;
        if after != NONE {
            self.previous[after] = left;
        }
    }

    fn ids(self) -> impl Iterator<Item = u32> {
        self.ids.into_iter().filter(|id| *id != GONE)
    }
}

fn check_sizes(tokens: &[String], kinds: &[i64]) -> Result<(), LlamaError> {
    if tokens.is_empty() || tokens.len() > VOCABULARY_MAX || tokens.len() != kinds.len() {
        let (tokens, kinds) = (tokens.len(), kinds.len());
        let reason = format!("it has {tokens} tokens and {kinds} token types");
        return Err(LlamaError::bad_file(reason));
    }
    let longest = tokens.iter().map(String::len).max().unwrap_or_default();
    let total: usize = tokens.iter().map(String::len).sum();
    if longest > TOKEN_BYTES_MAX || total > VOCABULARY_BYTES_MAX {
        let what = format!("tokens of {longest} bytes and a vocabulary of {total} bytes");
        return Err(LlamaError::unsupported(what));
    }
    Ok(())
}

/// GGUF's token types: 2 unknown, 3 control, 4 user-defined, 5 unused; 1 and 6 are text.
fn is_special_kind(kind: i64) -> bool {
    !matches!(kind, 1 | 6)
}

/// The printable characters that GPT-2 spells bytes with: itself where printable, else past 255.
fn spelled(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        0..=0x20 => shifted(u32::from(byte)),
        0x7f..=0xa0 => shifted(u32::from(byte) - 0x7f + 0x21),
        0xad => shifted(0x43),
    }
}

fn shifted(offset: u32) -> char {
    char::from_u32(0x100 + offset).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn spelled_bytes(token: &str) -> Result<Vec<u8>, LlamaError> {
    token
        .chars()
        .map(|character| {
            let byte = match u32::from(character) {
                code @ 0x100..=0x120 => code - 0x100,
                code @ 0x121..=0x142 => code - 0x121 + 0x7f,
                0x143 => 0xad,
                code => code,
            };
            u8::try_from(byte)
                .ok()
                .filter(|byte| spelled(*byte) == character)
                .ok_or_else(|| LlamaError::bad_file(format!("token {token:?} spells no bytes")))
        })
        .collect()
}

/// The token of each byte. Real vocabularies lack some control characters; those become nothing,
/// as they do elsewhere.
fn byte_ids(ids: &HashMap<&str, u32>) -> [u32; 256] {
    let mut byte_ids = [GONE; 256];
    for byte in 0..=u8::MAX {
        if let Some(id) = ids.get(spelled(byte).to_string().as_str()) {
            byte_ids[usize::from(byte)] = *id;
        }
    }
    byte_ids
}

fn read_merges(lines: &[String], ids: &HashMap<&str, u32>) -> Result<Merges, LlamaError> {
    let mut merges = HashMap::with_capacity(lines.len());
    for (rank, line) in (0_u32..).zip(lines) {
        let merge = line.split_once(' ').and_then(|(left, right)| {
            let merged = format!("{left}{right}");
            let pair = (*ids.get(left)?, *ids.get(right)?);
            Some((pair, *ids.get(merged.as_str())?))
        });
        let (pair, merged) = merge.ok_or_else(|| LlamaError::bad_file(format!("merge `{line}` joins no tokens")))?;
        merges.entry(pair).or_insert((rank, merged));
    }
    Ok(merges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_model;

    #[track_caller]
    fn check_cut(name: &str, text: &str, expected: &[&str]) {
        assert_eq!(Cut::named(name).expect("cut").words(text), expected);
    }

    fn decode(tokenizer: &Tokenizer, ids: &[u32]) -> String {
        let bytes = ids.iter().flat_map(|id| tokenizer.text_bytes(*id).to_vec());
        String::from_utf8(bytes.collect()).expect("utf-8")
    }

    #[test]
    fn text_is_cut_as_the_model_was_trained() {
        check_cut("gpt-2", "I'll go  now ", &["I", "'ll", " go", " ", " now", " "]);
        check_cut("gpt-2", "a 12\n\n b", &["a", " 12", "\n\n", " b"]);
        check_cut("smollm", "a 12  3b", &["a", " ", "1", "2", "  ", "3", "b"]);
        check_cut("smollm", "", &[]);
        check_cut("smollm", "x²½\u{a0}é!?", &["x", "²", "½", "\u{a0}", "é", "!?"]);
        assert!(Cut::named("llama-bpe").is_err());
    }

    #[test]
    fn the_lowest_merge_goes_first_and_all_bytes_come_back() {
        let tokenizer = test_model::tokenizer();
        let ids = tokenizer.encode("hello hell");
        let texts: Vec<_> = ids.iter().map(|id| decode(&tokenizer, &[*id])).collect();
        assert_eq!(texts, ["hell", "o", " h", "ell"]);
        let odd = "\u{0}\u{7f}\u{ad}ÿĀ\u{1f980}\r\n\t <|im_end|>";
        assert_eq!(decode(&tokenizer, &tokenizer.encode(odd)), odd);
    }

    #[test]
    fn special_tokens_are_found_only_where_they_are_asked_for() {
        let tokenizer = test_model::tokenizer();
        let (end, length) = tokenizer.special_at("<|im_end|>\n").expect("special");
        assert_eq!((tokenizer.end(), 10), (end, length));
        assert!(!tokenizer.encode("<|im_end|>").contains(&end));
        assert!(tokenizer.text_bytes(end).is_empty());
    }

    #[test]
    fn a_megabyte_without_a_blank_is_merged_in_time() {
        let tokenizer = test_model::tokenizer();
        let text = "hell".repeat(1 << 18);
        assert_eq!(tokenizer.encode(&text).len(), 1 << 18);
    }
}
