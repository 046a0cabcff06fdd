//! The text of a plain source: words, numbers and strings, and what stands between them.
//!
//! What may be anything else than that is refused; see [`super`].

use super::Range;

/// A source, and the place where its reader is.
pub(super) struct Text<'s> {
    whole: &'s str,
    pub(super) at: usize,
    /// Brackets that are open. Within them, lines end nothing.
    pub(super) brackets: usize,
}

impl<'s> Text<'s> {
    pub(super) fn new(whole: &'s str) -> Self {
        Self { whole, at: 0, brackets: 0 }
    }

    /// Numbers but those with a prefix other than `0x`, with zeros before them, or imaginary ones.
    pub(super) fn number(&mut self) -> Option<()> {
        match self.bytes_here() {
            [b'0', b'x' | b'X', digit, ..] if digit.is_ascii_hexdigit() => {
                self.at += 2;
                self.digits(u8::is_ascii_hexdigit);
            }
            [b'0', b'0'..=b'9' | b'_', ..] => return None,
            [b'.', digit, ..] if !digit.is_ascii_digit() => return None,
            [b'.'] => return None,
            _ => {
                self.digits(u8::is_ascii_digit);
                if self.takes(b'.') {
                    self.digits(u8::is_ascii_digit);
                }
                if let [b'e' | b'E', b'+' | b'-', b'0'..=b'9', ..] = self.bytes_here() {
                    self.at += 2;
                    self.digits(u8::is_ascii_digit);
                } else if let [b'e' | b'E', b'0'..=b'9', ..] = self.bytes_here() {
                    self.at += 1;
                    self.digits(u8::is_ascii_digit);
                }
            }
        }
        // Letters behind a number may be part of it, or a keyword.
        let behind = self.byte();
        (!is_word(behind) && behind != b'.' && behind.is_ascii()).then_some(())
    }

    /// Digits, with single underscores between them.
    fn digits(&mut self, is_digit: fn(&u8) -> bool) {
        let bytes = self.whole.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(is_digit);
        while digit(self.at) {
            self.at += 1;
            if self.byte() == b'_' && digit(self.at + 1) {
                self.at += 1;
            }
        }
    }

    /// A string, or several side by side.
    pub(super) fn strings(&mut self) -> Option<()> {
        while is_quote(self.byte()) {
            self.string()?;
            self.space();
        }
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let quote = self.byte();
        let bytes = self.bytes_here();
        let long = bytes.starts_with(&[quote; 3]);
        let ends = |at: &usize| bytes[*at] == quote && (!long || bytes[*at..].starts_with(&[quote; 3]));
        let begin = if long { 3 } else { 1 };
        let end = (begin..bytes.len()).find(ends)?;
        let odd = |byte: &u8| matches!(byte, b'\\' | 0) || (!long && matches!(byte, b'\n' | b'\r'));
        self.at += end + begin;
        (!bytes[begin..end].iter().any(odd)).then_some(())
    }

    /// A name that is no keyword.
    pub(super) fn name(&mut self) -> Option<&'s str> {
        let word = self.peek_word();
        self.at += word.len();
        let fits = !word.is_empty() && !is_quote(self.byte()) && self.byte().is_ascii() && !is_reserved(word);
        fits.then_some(word)
    }

    /// Goes over `=` and the spaces on both sides of it, unless it is part of a longer operator.
    pub(super) fn takes_equals(&mut self) -> bool {
        self.space();
        let takes = is_equals(self.bytes_here());
        if takes {
            self.at += 1;
            self.space();
        }
        takes
    }

    /// Whether `=` stands behind the word that begins here, if one does.
    pub(super) fn is_assigned(&self) -> bool {
        let here = self.bytes_here();
        let word = here.iter().position(|byte| !is_word(*byte)).unwrap_or(here.len());
        let behind = here[word..].iter().position(|byte| *byte != b' ').unwrap_or(here.len() - word);
        is_equals(&here[word + behind..])
    }

    pub(super) fn name_and_place(&mut self) -> Option<(&'s str, Range)> {
        let begin = u32::try_from(self.at).ok()?;
        let name = self.name()?;
        Some((name, (begin, u32::try_from(self.at).ok()?)))
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let here = self.bytes_here();
        let takes = here.starts_with(word.as_bytes())
            && here.get(word.len()).is_none_or(|behind| !is_word(*behind) && !is_quote(*behind) && behind.is_ascii());
        if takes {
            self.at += word.len();
        }
        takes
    }

    /// The word that begins here; empty where none does.
    pub(super) fn peek_word(&self) -> &'s str {
        let here = self.bytes_here();
        if !here.first().is_some_and(|first| is_word(*first) && !first.is_ascii_digit()) {
            return "";
        }
        let length = here.iter().position(|byte| !is_word(*byte)).unwrap_or(here.len());
        &self.whole[self.at..self.at + length]
    }

    /// Goes over spaces; within brackets over ends of lines and comments too.
    #[inline]
    pub(super) fn space(&mut self) {
        while matches!(self.byte(), b' ' | b'\n' | b'\r' | b'#') {
            match self.byte() {
                b' ' => self.at += 1,
                b'\n' | b'\r' if self.brackets > 0 => self.at += 1,
                b'#' if self.brackets > 0 => self.comment(),
                _ => return,
            }
        }
    }

    fn comment(&mut self) {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r' | 0);
        self.at += self.bytes_here().iter().position(ends).unwrap_or(self.bytes_here().len());
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.whole.len()
    }

    pub(super) fn is_line_end(&self) -> bool {
        matches!(self.byte(), b'\n' | b'\r' | b'#') || self.is_end()
    }

    /// Spaces, a comment and the end of a line, or of the source.
    pub(super) fn line_end(&mut self) -> Option<()> {
        self.space();
        if self.byte() == b'#' {
            self.comment();
        }
        let ends = self.is_line_end();
        self.at += usize::from(!self.is_end());
        ends.then_some(())
    }

    pub(super) fn takes(&mut self, byte: u8) -> bool {
        let takes = self.byte() == byte;
        self.at += usize::from(takes);
        takes
    }

    /// The byte here; zero, which no source may have, at the end.
    pub(super) fn byte(&self) -> u8 {
        self.whole.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn bytes_here(&self) -> &'s [u8] {
        self.whole.as_bytes().get(self.at..).unwrap_or_default()
    }
}

fn is_equals(here: &[u8]) -> bool {
    here.first() == Some(&b'=') && here.get(1) != Some(&b'=')
}

fn is_word(byte: u8) -> bool {
    static WORD: [bool; 256] = {
        let (mut word, mut byte) = ([false; 256], 0);
        while byte < 128_u8 {
            word[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
            byte += 1;
        }
        word
    };
    WORD[usize::from(byte)]
}

pub(super) fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

/// Keywords, and a name that nobody may bind.
#[rustfmt::skip]
fn is_reserved(word: &str) -> bool {
    // They are short, and no number stands at their end.
    let may_be = matches!(word.as_bytes(), [_, .., last] if word.len() <= 9 && !last.is_ascii_digit());
    may_be && matches!(
        word,
        "False" | "None" | "True" | "and" | "as" | "assert" | "async" | "await" | "break" | "class" | "continue"
            | "def" | "del" | "elif" | "else" | "except" | "finally" | "for" | "from" | "global" | "if" | "import"
            | "in" | "is" | "lambda" | "nonlocal" | "not" | "or" | "pass" | "raise" | "return" | "try" | "while"
            | "with" | "yield" | "__debug__"
    )
}
