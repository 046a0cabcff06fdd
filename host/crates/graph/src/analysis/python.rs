//! Python: from a source to its [`Analysis`], by ruff's parser.
//!
//! The walk follows the module's statements in the order in which Python runs them and knows which names are certain.
//! Bodies of functions run later: what they read is exposed when it is not certain where they may first be called, or
//! at the end. The walk does not follow values: what happens through an alias, or in a function of another step, is
//! seen when the steps run.

mod bindings;
mod expression;
mod scope;
mod statement;

use super::flow::{Flow, Status};
use super::nesting::{Depth, TooDeep, Weight};
use super::symbols::{Symbol, Symbols};
use super::{Analysis, Language, Mode, Name, Python, Reason, SOURCE_BYTES_MAX, SyntaxError, builtins, lines, stack};
use ruff_python_ast::{ModModule, PythonVersion, token::TokenKind};
use ruff_python_parser::{Mode as Grammar, ParseOptions, lexer, parse_unchecked};
use ruff_text_size::{Ranged, TextRange};
use scope::Scopes;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Depth up to which a source is walked on the caller's own stack.
const NESTING_SMALL: usize = 40;

impl Language for Python {
    fn analyse(&self, source: &str) -> Result<Analysis, SyntaxError> {
        let mode = self.mode;
        with_module(source, move |source, module| Walk::new(source, mode).module(module))?
    }

    fn name(&self) -> &'static str {
        "python"
    }
}

/// Parses a source and hands its tree to `work`, on a stack that is large enough for both and for the tree's end.
///
/// # Errors
/// [`SyntaxError`] as for [`Language::analyse`].
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

/// The byte whose token is one too deep. The lexer keeps its place to itself, so the shortest source that is too deep
/// is searched for: twenty more looks at a source of a million bytes.
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

/// The walk over one module.
struct Walk<'a> {
    source: &'a str,
    mode: Mode,
    symbols: Symbols,
    scopes: Scopes,
    flow: Flow,
    loops: Vec<statement::Loop>,
    /// How many bodies that run later the walk is in.
    deferred: usize,
    /// What such bodies read, with the first place.
    later: HashMap<Symbol, TextRange>,
    /// What of that was read by bodies that nothing had the chance to call yet.
    pending: Vec<Symbol>,
    reads: HashMap<Symbol, TextRange>,
    writes: HashSet<Symbol>,
    deletes: HashSet<Symbol>,
    mutates: HashMap<Symbol, Reason>,
    sees_all: Option<Reason>,
    error: Option<(usize, &'static str)>,
}

impl<'a> Walk<'a> {
    fn new(source: &'a str, mode: Mode) -> Self {
        Self {
            source,
            mode,
            symbols: Symbols::default(),
            scopes: Scopes::new(),
            flow: Flow::new(),
            loops: Vec::new(),
            deferred: 0,
            later: HashMap::new(),
            pending: Vec::new(),
            reads: HashMap::new(),
            writes: HashSet::new(),
            deletes: HashSet::new(),
            mutates: HashMap::new(),
            sees_all: None,
            error: None,
        }
    }

    fn module(mut self, module: &ModModule) -> Result<Analysis, SyntaxError> {
        self.block(&module.body);
        if let Some((offset, message)) = self.error {
            return Err(error_at(self.source, offset, message.to_owned()));
        }
        // A later step may call what was defined here; what is not certain by now is read from what comes before.
        for (name, range) in std::mem::take(&mut self.later) {
            self.expose(name, range);
        }
        Ok(self.answer())
    }

    fn answer(self) -> Analysis {
        let Self { symbols, flow, source, .. } = self;
        let name = |symbol: &Symbol| symbols.name(*symbol);
        let (read, ranges): (Vec<_>, Vec<_>) =
            self.reads.iter().map(|(symbol, range)| (name(symbol), (range.start().into(), range.end().into()))).unzip();
        let (mut reads, mut builtin) = (BTreeMap::new(), BTreeMap::new());
        for (name, span) in read.into_iter().zip(lines::spans(source, &ranges)) {
            let into = if builtins::is_builtin(&name) { &mut builtin } else { &mut reads };
            into.insert(name, span);
        }
        let settled = flow.module().filter(|(symbol, _)| self.writes.contains(symbol) || self.deletes.contains(symbol));
        let (mut definite_writes, mut settles) = (Vec::new(), Vec::new());
        for (symbol, status) in settled {
            settles.push(name(&symbol));
            if status == Status::Bound {
                definite_writes.push(name(&symbol));
            }
        }
        Analysis {
            reads,
            builtins: builtin,
            writes: self.writes.iter().map(name).collect(),
            definite_writes: definite_writes.into_iter().collect(),
            mutates: self.mutates.iter().map(|(symbol, reason)| (name(symbol), reason.clone())).collect(),
            deletes: self.deletes.iter().map(name).collect(),
            settles: settles.into_iter().collect(),
            sees_all: self.sees_all,
        }
    }

    /// A name of the namespace is read by code that runs here.
    fn expose(&mut self, symbol: Symbol, range: TextRange) {
        if self.flow.status((0, symbol)).is_none() {
            self.reads.entry(symbol).or_insert(range);
        }
    }

    /// Code that is not seen here may run now, and with it every function that was defined before.
    fn may_call(&mut self) {
        if self.deferred == 0 {
            for symbol in std::mem::take(&mut self.pending) {
                if let Some(range) = self.later.get(&symbol).copied() {
                    self.expose(symbol, range);
                }
            }
        }
    }

    fn refuse(&mut self, range: TextRange, message: &'static str) {
        self.error.get_or_insert((range.start().to_usize(), message));
    }

    fn sound(&self) -> bool {
        self.mode == Mode::Sound
    }

    fn name(&self, symbol: Symbol) -> Name {
        self.symbols.name(symbol)
    }
}
