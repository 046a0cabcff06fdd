//! A text as the pieces of words that a BERT without capitals knows: WordPiece behind BERT's own cleaning.
//!
//! Cleaning drops control characters, puts spaces around Chinese characters, takes accents off and makes small letters;
//! a word ends at white space and at each punctuation mark. A word is the longest piece that begins it, then the
//! longest that goes on, and unknown as a whole where that does not come out. All of it takes time in proportion to the
//! text, of which only as much is read as a model takes.

use crate::EmbeddingsError;
use regex::Regex;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization as _;

/// Characters of a word that is looked up; a longer one is unknown. The model's own number.
const WORD_CHARS_MAX: usize = 100;

/// Pieces of a vocabulary: four times that of the model.
const VOCABULARY_MAX: usize = 1 << 17;

/// Mark of the vocabulary for a piece that does not begin a word.
const WITHIN: &str = "##";

/// The pieces that are known, and how a text is cut into them.
pub struct Pieces {
    known: HashMap<String, u32>,
    unknown: u32,
    begin: u32,
    end: u32,
    /// Marks above and below letters, once they are apart from them.
    accents: Regex,
    punctuation: Regex,
    /// Control characters, and what is nothing.
    nothing: Regex,
}

impl Pieces {
    /// Reads a vocabulary: a piece a line, numbered from 0.
    ///
    /// # Errors
    /// [`EmbeddingsError::Vocabulary`] when a piece is missing that each text needs, or there are too many.
    pub fn read(vocabulary: &str) -> Result<Self, EmbeddingsError> {
        let wrong = |reason: String| EmbeddingsError::Vocabulary { reason };
        let mut known = HashMap::new();
        for (number, piece) in (0_u32..).zip(vocabulary.lines()) {
            if known.len() >= VOCABULARY_MAX {
                return Err(wrong(format!("it has more than {VOCABULARY_MAX} pieces")));
            }
            known.insert(piece.to_owned(), number);
        }
        let own = |piece: &str| known.get(piece).copied().ok_or_else(|| wrong(format!("it has no `{piece}`")));
        let pattern = |text: &str| Regex::new(text).map_err(|error| wrong(error.to_string()));
        Ok(Self {
            unknown: own("[UNK]")?,
            begin: own("[CLS]")?,
            end: own("[SEP]")?,
            accents: pattern(r"\p{Mn}")?,
            punctuation: pattern(r"[\p{P}!-/:-@\[-`{-~]")?,
            nothing: pattern(r"[\p{C}\x{FFFD}]")?,
            known,
        })
    }

    /// The numbers of a text's pieces, between those that mark its beginning and its end: at most so many, of which the
    /// text's end is what is left out.
    #[must_use]
    pub fn of(&self, text: &str, pieces_max: usize) -> Vec<u32> {
        let room = pieces_max.saturating_sub(2);
        let mut numbers = vec![self.begin];
        // A piece has a character at least, and cleaning makes at most three of one; what is beyond is never read.
        let beginning =
            text.char_indices().nth(room.saturating_mul(WORD_CHARS_MAX)).map_or(text, |(at, _)| &text[..at]);
        for word in self.words(beginning) {
            if numbers.len() > room {
                break;
            }
            self.cut(&word, &mut numbers);
        }
        numbers.truncate(room + 1);
        numbers.push(self.end);
        numbers
    }

    fn words(&self, text: &str) -> Vec<String> {
        let spaced: String = text.chars().flat_map(spaced).collect();
        let plain: String = spaced.nfd().collect();
        let plain = self.accents.replace_all(&plain, "").to_lowercase();
        let mut words = Vec::new();
        for word in plain.split_whitespace() {
            let word = self.nothing.replace_all(word, "");
            let mut start = 0;
            for mark in self.punctuation.find_iter(&word) {
                words.extend([&word[start..mark.start()], mark.as_str()].map(str::to_owned));
                start = mark.end();
            }
            words.push(word[start..].to_owned());
        }
        words.retain(|word| !word.is_empty());
        words
    }

    fn cut(&self, word: &str, numbers: &mut Vec<u32>) {
        if word.chars().count() > WORD_CHARS_MAX {
            numbers.push(self.unknown);
            return;
        }
        let (first, mut rest) = (numbers.len(), word);
        while !rest.is_empty() {
            let prefix = if rest.len() == word.len() { "" } else { WITHIN };
            let Some((number, length)) = self.longest(prefix, rest) else {
                numbers.truncate(first);
                numbers.push(self.unknown);
                return;
            };
            numbers.push(number);
            rest = &rest[length..];
        }
    }

    /// The longest known piece that a text begins with, and its length in bytes.
    fn longest(&self, prefix: &str, text: &str) -> Option<(u32, usize)> {
        let ends = text.char_indices().map(|(at, char)| at + char.len_utf8());
        let ends: Vec<usize> = ends.collect();
        ends.into_iter().rev().find_map(|end| {
            let number = self.known.get(&format!("{prefix}{}", &text[..end]))?;
            Some((*number, end))
        })
    }
}

/// A character with spaces where BERT puts them: white space is one space, and a Chinese character is a word.
fn spaced(char: char) -> impl Iterator<Item = char> {
    let chars = match char {
        char if is_chinese(char) => [Some(' '), Some(char), Some(' ')],
        '\t' | '\n' | '\r' => [Some(' '), None, None],
        char => [Some(char), None, None],
    };
    chars.into_iter().flatten()
}

/// The blocks of Chinese characters, as BERT counts them.
fn is_chinese(char: char) -> bool {
    matches!(u32::from(char),
        0x4E00..=0x9FFF | 0x3400..=0x4DBF | 0x2_0000..=0x2_A6DF | 0x2_A700..=0x2_B73F | 0x2_B740..=0x2_B81F
        | 0x2_B820..=0x2_CEAF | 0xF900..=0xFAFF | 0x2_F800..=0x2_FA1F)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: &str =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\ncafe\nport\n##s\n##al\n!\n,\n日\n本\nun\n##able\n[\n]\ncls\n";

    #[track_caller]
    fn check(text: &str, expected: &[u32]) {
        let pieces = Pieces::read(VOCABULARY).expect("a vocabulary");
        let numbers = pieces.of(text, 32);
        assert_eq!(numbers[1..numbers.len() - 1], *expected, "{text:?}");
        assert_eq!((numbers[0], numbers[numbers.len() - 1]), (2, 3));
    }

    #[test]
    fn a_text_is_cut_into_the_longest_pieces_that_are_known() {
        check("", &[]);
        check("The ports, the portal!", &[4, 6, 7, 10, 4, 6, 8, 9]);
        check("Café CAFÉ cafe\u{301}", &[5, 5, 5]);
        check("日本", &[11, 12]);
        check("the\tport\u{0}\nports\u{200b}", &[4, 6, 6, 7]);
        check("unport unable", &[1, 13, 14]);
        // Text that looks like a mark of the model stays text.
        check("[CLS]", &[15, 17, 16]);
    }

    #[test]
    fn no_text_makes_more_than_a_model_takes_or_takes_long() {
        let pieces = Pieces::read(VOCABULARY).expect("a vocabulary");
        for text in ["the ".repeat(1 << 20), "x".repeat(4 << 20), "!".repeat(1 << 20), "\u{301}".repeat(1 << 20)] {
            let numbers = pieces.of(&text, 256);
            assert!(numbers.len() <= 256 && numbers.len() >= 2);
        }
        assert_eq!(pieces.of("the the the", 4), [2, 4, 4, 3], "one below, at and above what fits");
        assert_eq!(pieces.of("the the", 4), [2, 4, 4, 3]);
        assert_eq!(pieces.of("the", 4), [2, 4, 3]);
    }

    #[test]
    fn a_vocabulary_without_what_each_text_needs_is_refused() {
        for text in ["", "[CLS]\n[SEP]\n", "[UNK]\n[CLS]\n"] {
            assert!(Pieces::read(text).is_err(), "{text:?}");
        }
    }
}
