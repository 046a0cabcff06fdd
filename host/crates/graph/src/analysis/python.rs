//! Analysis of Python: from a source to its [`Analysis`], by ruff's parser.
//!
//! The walk follows the module's statements in the order in which Python runs them and knows the certain names. Bodies
//! of functions run later: a name that they read counts as a read of the step if it is not certain at the first
//! possible call, or at the end. The walk follows values only to end proofs, within one source: effects through an
//! alias, or in a function of another step, are observed when the steps run.

mod bindings;
mod changes;
mod expression;
mod kinds;
mod origins;
mod purity;
mod scope;
mod statement;
mod walk;

use super::nesting::{Depth, TooDeep, Weight};
use super::{Analysis, Python, SOURCE_BYTES_MAX, StepLanguage, SyntaxError, builtins, lines, stack};
use ruff_python_ast::{ModModule, PythonVersion, token::TokenKind};
use ruff_python_parser::{Mode as Grammar, ParseOptions, lexer, parse_unchecked};
use ruff_text_size::Ranged;
use walk::Walk;

/// Depth up to which a source is walked on the caller's own stack.
const NESTING_SMALL: usize = 40;

impl StepLanguage for Python {
    fn analyse(&self, source: &str) -> Result<Analysis, SyntaxError> {
        let mode = self.mode;
        with_module(source, move |source, module| Walk::new(mode).module(source, module))?
    }

    fn name(&self) -> &'static str {
        "python"
    }
}

/// Parses a source and hands its tree to `work`, on a stack that is large enough for both and for the tree's end.
///
/// # Errors
/// [`SyntaxError`] as for [`StepLanguage::analyse`].
pub(crate) fn with_module<T: Send + 'static>(
    source: &str,
    work: impl FnOnce(&str, &ModModule) -> T + Send + 'static,
) -> Result<T, SyntaxError> {
    check_text(source)?;
    if source.len() <= NESTING_SMALL || deepest(source)? <= NESTING_SMALL {
        return parsed(source, work);
    }
    let source = source.to_owned();
    stack::on_large_stack(move || parsed(&source, work)).unwrap_or_else(|| {
        Err(SyntaxError { message: "no thread could be started to parse so deep a source".into(), line: 1, column: 1 })
    })
}

fn check_text(source: &str) -> Result<(), SyntaxError> {
    if source.len() > SOURCE_BYTES_MAX {
        let message = format!("the source has {} bytes; the most is {SOURCE_BYTES_MAX}", source.len());
        return Err(SyntaxError { message, line: 1, column: 1 });
    }
    match source.find('\0') {
        Some(at) => Err(error_at(source, at, "a null byte".into())),
        None => Ok(()),
    }
}

fn error_at(source: &str, offset: usize, message: String) -> SyntaxError {
    let (line, column) = lines::line_column(source, offset);
    SyntaxError { message, line, column }
}

/// The depth of a source, or the error of one that is too deep.
fn deepest(source: &str) -> Result<usize, SyntaxError> {
    depth(source).map_err(|too_deep| error_at(source, place_too_deep(source), too_deep.message()))
}

fn depth(source: &str) -> Result<usize, TooDeep> {
    let (mut lexer, mut depth) = (lexer::lex(source, Grammar::Module), Depth::default());
    loop {
        let kind = lexer.next_token();
        depth.add(weight(kind))?;
        if kind == TokenKind::EndOfFile {
            return Ok(depth.deepest());
        }
    }
}

/// The byte of the first token that is too deep. The lexer does not report its position, so the shortest source that is
/// too deep is found by bisection: twenty more scans of a source of a million bytes.
fn place_too_deep(source: &str) -> usize {
    let (mut fits, mut deep) = (0, source.len());
    while fits + 1 < deep {
        let middle = source.floor_char_boundary(fits.midpoint(deep));
        if middle <= fits {
            break;
        }
        if depth(&source[..middle]).is_ok() { fits = middle } else { deep = middle }
    }
    fits
}

fn weight(kind: TokenKind) -> Weight {
    match kind {
        TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace | TokenKind::FStringStart | TokenKind::TStringStart => {
            Weight::Open
        }
        TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace | TokenKind::FStringEnd | TokenKind::TStringEnd => {
            Weight::Close
        }
        TokenKind::Indent => Weight::Indent,
        TokenKind::Dedent => Weight::Dedent,
        TokenKind::Comma => Weight::Separate,
        TokenKind::Newline | TokenKind::Semi => Weight::End,
        TokenKind::Lambda => Weight::LeanOn,
        TokenKind::Await | TokenKind::Not | TokenKind::If | TokenKind::Else | TokenKind::ColonEqual => Weight::Lean,
        TokenKind::Dot | TokenKind::Plus | TokenKind::Minus | TokenKind::Star | TokenKind::Slash => Weight::Lean,
        TokenKind::Percent | TokenKind::DoubleSlash | TokenKind::DoubleStar | TokenKind::At => Weight::Lean,
        TokenKind::Vbar | TokenKind::Amper | TokenKind::CircumFlex | TokenKind::Tilde => Weight::Lean,
        TokenKind::LeftShift | TokenKind::RightShift | TokenKind::Yield => Weight::Lean,
        _ => Weight::None,
    }
}

fn parsed<T>(source: &str, work: impl FnOnce(&str, &ModModule) -> T) -> Result<T, SyntaxError> {
    let options = ParseOptions::from(Grammar::Module).with_target_version(PythonVersion::PY314);
    let parsed = parse_unchecked(source, options);
    if let Some(error) = parsed.errors().first() {
        return Err(error_at(source, error.location.start().to_usize(), error.error.to_string()));
    }
    if let Some(error) = parsed.unsupported_syntax_errors().first() {
        return Err(error_at(source, error.range().start().to_usize(), error.to_string()));
    }
    let Some(parsed) = parsed.try_into_module() else {
        return Err(SyntaxError { message: "not a module".into(), line: 1, column: 1 });
    };
    Ok(work(source, parsed.syntax()))
}

impl Walk {
    fn module(mut self, source: &str, module: &ModModule) -> Result<Analysis, SyntaxError> {
        self.block(&module.body);
        let answer = self.facts.answer(source, builtins::is_builtin);
        answer.map_err(|(offset, message)| error_at(source, offset, message.to_owned()))
    }
}
