//! Plain steps, read in one pass and without a tree.
//!
//! Most steps that agents write are a few assignments and calls. Of the time that such a step takes to analyse, more
//! than half went into a tree that is built, walked and freed. This reader goes over the bytes of such a source once,
//! and twice over targets, which come first and happen last, and tells the same [`Walk`] the same things in the same
//! order.
//!
//! It reads simple statements at the left edge: assignments, augmented ones, expressions, imports, `pass`. In them it
//! knows names of ASCII, common numbers, strings without prefix and backslash, displays, attributes, items and slices,
//! calls without stars, and operators but `:=` and `if`. Everything else it refuses, and the parser does the work: so
//! an error is always the parser's, and what this reader is not sure of costs time and nothing else. Whatever it reads,
//! the parser reads in the same way; `what_is_read_plainly_is_what_the_parser_reads` holds it to that.

use super::super::facts::Range;
use super::super::{Analysis, Mode, Reason, SOURCE_BYTES_MAX, builtins};
use super::Walk;
use super::expression::NAMELESS;
use text::{Text, is_quote};

#[cfg(test)]
mod tests;
mod text;

/// Most brackets that may be open at once. Each is a few calls of the reader within each other.
const BRACKETS_MAX: usize = 20;

/// Most operators, attributes, items and calls of one statement: far below [`super::super::LEANING_MAX`], so that none
/// is read that is refused for its depth.
const OPERATORS_MAX: usize = 1_000;

/// Most named arguments of the calls that are open at once: each is held against those of its call before it.
const NAMED_MAX: usize = 32;

/// What a plain source does; nothing for any other.
pub(super) fn analysis(source: &str, mode: Mode) -> Option<Analysis> {
    if source.len() > SOURCE_BYTES_MAX {
        return None;
    }
    let mut reader = Reader::new(source, mode);
    reader.source()?;
    reader.walk.facts.answer(source, builtins::is_builtin).ok()
}

struct Reader<'s> {
    text: Text<'s>,
    walk: Walk,
    /// True on the first way over targets, on which nothing happens yet.
    ahead: bool,
    operators: usize,
    /// Calls that are open and whose arguments matter.
    calls: usize,
    /// The names that the arguments read so far lead to, as far as they may be changed by who is given them.
    given: Vec<&'s str>,
    /// The named arguments of the calls that are open.
    named: Vec<&'s str>,
}

/// An expression that was read, as far as it matters to what stands behind it.
#[derive(Clone, Copy)]
struct Value<'s> {
    /// The name that it is, or is a part of: `a` of `a.b[0]`.
    base: Option<&'s str>,
    form: Form<'s>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form<'s> {
    Name,
    Attribute(&'s str),
    Item,
    Other,
}

/// How a statement goes on behind its first target.
enum Assigned {
    Plainly,
    Augmented,
}

const OTHER: Value<'static> = Value { base: None, form: Form::Other };

impl<'s> Reader<'s> {
    fn new(text: &'s str, mode: Mode) -> Self {
        let (text, walk) = (Text::new(text), Walk::new(mode));
        Self { text, walk, ahead: false, operators: 0, calls: 0, given: Vec::new(), named: Vec::new() }
    }

    fn source(&mut self) -> Option<()> {
        while !self.text.is_end() {
            // A line that is indented has to be empty, which the end of a line makes sure of.
            if !matches!(self.text.byte(), b' ' | b'#' | b'\n' | b'\r') {
                self.statement()?;
                self.text.space();
                while self.text.takes(b';') {
                    self.text.space();
                    if !self.text.is_line_end() {
                        self.statement()?;
                        self.text.space();
                    }
                }
            }
            self.text.line_end()?;
        }
        Some(())
    }

    fn statement(&mut self) -> Option<()> {
        self.operators = 0;
        if !matches!(self.text.byte(), b'c' | b'f' | b'i' | b'm' | b'p' | b't') {
            return self.assignment();
        }
        match self.text.peek_word() {
            "pass" => self.text.take_word("pass").then_some(()),
            "import" => self.import(),
            "from" => self.import_from(),
            // These may begin a statement of their own.
            "match" | "case" | "type" => None,
            _ => self.assignment(),
        }
    }

    fn assignment(&mut self) -> Option<()> {
        if let Some(name) = self.only_name() {
            self.expressions()?;
            self.walk.bind_name(name);
            return Some(());
        }
        let (begin, assigned) = (self.text.at, self.look_ahead());
        if let Some(Assigned::Augmented) = assigned {
            return self.augmented(begin);
        }
        let value = self.text.at;
        self.expressions()?;
        let end = std::mem::replace(&mut self.text.at, begin);
        while self.text.at < value {
            self.targets()?;
            self.assigned()?;
        }
        self.text.at = end;
        Some(())
    }

    /// Goes over a name and `=`, where no other name is assigned behind it: most statements begin so.
    fn only_name(&mut self) -> Option<&'s str> {
        let begin = self.text.at;
        let name = self.text.name().filter(|_| self.text.takes_equals() && !self.text.is_assigned());
        if name.is_none() {
            self.text.at = begin;
        }
        name
    }

    fn augmented(&mut self, begin: usize) -> Option<()> {
        let value = std::mem::replace(&mut self.text.at, begin);
        let (name, range) = self.text.name_and_place()?;
        self.text.space();
        if !self.goes_on() {
            self.walk.augmented_name(name, range);
        }
        self.text.at = value;
        self.expressions()?;
        let end = std::mem::replace(&mut self.text.at, begin);
        self.targets()?;
        self.text.at = end;
        Some(())
    }

    /// Goes over the targets that a statement begins with, to its value. Of several, only the first may be more than a
    /// name: to look whether a value is another target would be to read it twice.
    fn look_ahead(&mut self) -> Option<Assigned> {
        let mut begin = self.text.at;
        self.ahead = true;
        let one = self.targets();
        let assigned = one.and_then(|one| self.assigned().filter(|how| one || matches!(how, Assigned::Plainly)));
        self.ahead = false;
        if assigned.is_some() {
            begin = self.text.at;
        }
        if let Some(Assigned::Plainly) = assigned {
            while self.text.name().is_some() && matches!(self.assigned(), Some(Assigned::Plainly)) {
                begin = self.text.at;
            }
        }
        self.text.at = begin;
        (self.text.brackets, self.operators) = (0, 0);
        self.named.clear();
        assigned
    }

    /// Names, attributes and items with commas between them; true for one without a comma.
    fn targets(&mut self) -> Option<bool> {
        let mut one = true;
        loop {
            self.target()?;
            self.text.space();
            if !self.text.takes(b',') {
                return Some(one);
            }
            one = false;
            self.text.space();
            if self.text.byte() == b'=' {
                return Some(one);
            }
        }
    }

    fn target(&mut self) -> Option<()> {
        let (name, range) = self.text.name_and_place()?;
        self.text.space();
        if !self.goes_on() {
            if !self.ahead {
                self.walk.bind_name(name);
            }
            return Some(());
        }
        self.read(name, range);
        let within = self.behind(Value { base: Some(name), form: Form::Name })?;
        let reason = match within.form {
            Form::Attribute(_) => Reason::AttributeStore,
            Form::Item => Reason::SubscriptStore,
            Form::Name | Form::Other => return None,
        };
        if let (Some(name), false) = (within.base, self.ahead) {
            self.walk.mutate_name(name, &reason);
        }
        Some(())
    }

    /// `=`, or an operator with one.
    fn assigned(&mut self) -> Option<Assigned> {
        self.text.space();
        let (operator, how) = match self.text.bytes_here() {
            [b'=', b'=', ..] => return None,
            [b'=', ..] => (0, Assigned::Plainly),
            [b'*', b'*', b'=', ..] | [b'/', b'/', b'=', ..] | [b'<', b'<', b'=', ..] | [b'>', b'>', b'=', ..] => {
                (2, Assigned::Augmented)
            }
            [b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^', b'=', ..] => (1, Assigned::Augmented),
            _ => return None,
        };
        self.text.at += operator + 1;
        self.text.space();
        Some(how)
    }

    /// The value of a statement: an expression, or several with commas between them.
    fn expressions(&mut self) -> Option<()> {
        loop {
            self.expression()?;
            self.text.space();
            if !self.text.takes(b',') {
                return Some(());
            }
            self.text.space();
            if self.text.is_line_end() || self.text.byte() == b';' {
                return Some(());
            }
        }
    }

    fn import(&mut self) -> Option<()> {
        self.text.take_word("import");
        loop {
            self.text.space();
            let first = self.text.name()?;
            while self.text.takes(b'.') {
                self.text.name()?;
            }
            let bound = self.renamed()?.unwrap_or(first);
            self.walk.bind_name(bound);
            if !self.text.takes(b',') {
                return Some(());
            }
        }
    }

    /// From a module that is named in full: of what is special, dots before it and `__future__`, the parser knows more.
    fn import_from(&mut self) -> Option<()> {
        self.text.take_word("from");
        self.text.space();
        if self.text.name()? == "__future__" {
            return None;
        }
        while self.text.takes(b'.') {
            self.text.name()?;
        }
        self.text.space();
        self.text.take_word("import").then_some(())?;
        self.text.space();
        let bracket = self.text.takes(b'(');
        self.text.brackets = usize::from(bracket);
        loop {
            self.text.space();
            let name = self.text.name()?;
            let bound = self.renamed()?.unwrap_or(name);
            self.walk.bind_name(bound);
            let more = self.text.takes(b',');
            self.text.space();
            if bracket && self.text.takes(b')') {
                self.text.brackets = 0;
                return Some(());
            }
            if !more {
                return (!bracket).then_some(());
            }
        }
    }

    /// `as name`, if that follows.
    fn renamed(&mut self) -> Option<Option<&'s str>> {
        self.text.space();
        if self.text.peek_word() != "as" {
            return Some(None);
        }
        self.text.take_word("as");
        self.text.space();
        let name = self.text.name()?;
        self.text.space();
        Some(Some(name))
    }

    fn expression(&mut self) -> Option<Value<'s>> {
        let mut value = self.operation()?;
        while matches!(self.text.byte(), b'a' | b'o') && matches!(self.text.peek_word(), "and" | "or") {
            self.text.at += self.text.peek_word().len();
            self.operator()?;
            self.operation()?;
            value = OTHER;
        }
        Some(value)
    }

    /// What stands between `and` and `or`. Of the operators within it, it does not matter which binds closer.
    fn operation(&mut self) -> Option<Value<'s>> {
        let (given, mut alone) = (self.given.len(), true);
        self.text.space();
        while self.text.byte() == b'n' && self.text.take_word("not") {
            self.operator()?;
            alone = false;
        }
        loop {
            while matches!(self.text.byte(), b'+' | b'-' | b'~') {
                self.text.at += 1;
                self.operator()?;
                alone = false;
            }
            let value = self.primary()?;
            if !self.between()? {
                if alone {
                    return Some(value);
                }
                self.given.truncate(given);
                return Some(OTHER);
            }
            self.operator()?;
            alone = false;
        }
    }

    /// Counts an operator that was read, and goes on to what it is for.
    fn operator(&mut self) -> Option<()> {
        self.operators += 1;
        self.text.space();
        (self.operators <= OPERATORS_MAX).then_some(())
    }

    /// Reads an operator between two operands, if one follows.
    fn between(&mut self) -> Option<bool> {
        let length = match self.text.bytes_here() {
            [b'<' | b'>' | b'=' | b'!', b'=', ..] => 2,
            [b'*', b'*', b'=', ..] | [b'/', b'/', b'=', ..] | [b'<', b'<', b'=', ..] | [b'>', b'>', b'=', ..] => 0,
            [b'*', b'*', ..] | [b'/', b'/', ..] | [b'<', b'<', ..] | [b'>', b'>', ..] => 2,
            [b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^', b'=', ..] => 0,
            [b'+' | b'-' | b'*' | b'/' | b'%' | b'@' | b'&' | b'|' | b'^' | b'<' | b'>', ..] => 1,
            [b'i' | b'n', ..] => return self.between_in_words(),
            _ => 0,
        };
        self.text.at += length;
        Some(length > 0)
    }

    fn between_in_words(&mut self) -> Option<bool> {
        if self.text.take_word("in") {
            return Some(true);
        }
        if self.text.take_word("is") {
            self.text.space();
            self.text.take_word("not");
            return Some(true);
        }
        if self.text.take_word("not") {
            self.text.space();
            return self.text.take_word("in").then_some(true);
        }
        Some(false)
    }

    fn primary(&mut self) -> Option<Value<'s>> {
        let given = self.given.len();
        let value = match self.text.byte() {
            b'(' => self.parenthesized()?,
            b'[' => self.list()?,
            b'{' => self.braced()?,
            b'"' | b'\'' => self.text.strings().map(|()| OTHER)?,
            b'0'..=b'9' | b'.' => self.text.number().map(|()| OTHER)?,
            _ => self.word()?,
        };
        self.text.space();
        if !self.goes_on() {
            return Some(value);
        }
        let value = self.behind(value)?;
        if value.base.is_none() {
            self.given.truncate(given);
        }
        Some(value)
    }

    /// Whether an attribute, an item or a call of what was read follows.
    fn goes_on(&self) -> bool {
        matches!(self.text.byte(), b'.' | b'[' | b'(')
    }

    /// The attributes, items and calls behind what they are of.
    fn behind(&mut self, mut value: Value<'s>) -> Option<Value<'s>> {
        loop {
            value.form = match self.text.byte() {
                b'.' => {
                    self.text.at += 1;
                    self.operator()?;
                    Form::Attribute(self.text.name()?)
                }
                b'[' => {
                    self.within(Self::item)?;
                    Form::Item
                }
                b'(' => {
                    self.within(|reader| reader.call(value))?;
                    value.base = None;
                    Form::Other
                }
                _ => return Some(value),
            };
            self.text.space();
        }
    }

    /// Reads a bracket that opens here with what is in it, up to and with the one that closes it.
    fn within<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.text.at += 1;
        self.text.brackets += 1;
        self.operator()?;
        let inner = (self.text.brackets <= BRACKETS_MAX).then(|| inner(self)).flatten();
        self.text.brackets -= 1;
        self.text.at += 1;
        inner
    }

    /// True where a comma was read and more follows, false at the bracket that closes.
    fn more(&mut self, close: u8) -> Option<bool> {
        self.text.space();
        let comma = self.text.takes(b',');
        self.text.space();
        if self.text.byte() == close { Some(false) } else { comma.then_some(true) }
    }

    fn item(&mut self) -> Option<()> {
        let given = self.given.len();
        loop {
            let mut colons = 0;
            if self.text.byte() != b':' {
                self.expression()?;
                self.text.space();
            }
            while colons < 2 && self.text.takes(b':') {
                colons += 1;
                self.text.space();
                if !matches!(self.text.byte(), b':' | b',' | b']') {
                    self.expression()?;
                    self.text.space();
                }
            }
            if !self.more(b']')? {
                self.given.truncate(given);
                return Some(());
            }
        }
    }

    fn call(&mut self, function: Value<'s>) -> Option<()> {
        let (given, named) = (self.given.len(), self.named.len());
        let matters = usize::from(!self.ahead && self.walk.sound());
        let mut bare = true;
        self.calls += matters;
        let mut more = self.text.byte() != b')';
        while more {
            bare = false;
            self.argument(named)?;
            more = self.more(b')')?;
        }
        self.calls -= matters;
        let keyed = self.named[named..].contains(&"key");
        if !self.ahead {
            self.called(function, bare, keyed, given);
        }
        self.named.truncate(named);
        self.given.truncate(given);
        Some(())
    }

    /// One argument of a call whose named ones begin at `named`. Names that are given twice, and what follows a name
    /// without one, is the parser's to refuse.
    fn argument(&mut self, named: usize) -> Option<()> {
        let begin = self.text.at;
        if let Some(name) = self.text.name() {
            self.text.space();
            if self.text.byte() == b'=' && self.text.bytes_here().get(1) != Some(&b'=') {
                if self.named.len() >= NAMED_MAX || self.named[named..].contains(&name) {
                    return None;
                }
                self.named.push(name);
                self.text.at += 1;
                self.text.space();
                return self.expression().map(drop);
            }
        }
        self.text.at = begin;
        (self.named.len() == named).then_some(())?;
        self.expression().map(drop)
    }

    fn called(&mut self, function: Value<'s>, bare: bool, keyed: bool, given: usize) {
        let name = function.base.filter(|_| function.form == Form::Name);
        if !self.walk.called(name, bare, keyed) {
            return;
        }
        let function = match (function.form, function.base) {
            (Form::Attribute(method), base) => {
                if let Some(base) = base {
                    self.walk.mutate_name(base, &Reason::MethodCall { method: method.into() });
                }
                method
            }
            _ => name.unwrap_or(NAMELESS),
        };
        if self.given.len() > given {
            let reason = Reason::Argument { function: function.into() };
            self.given[given..].iter().for_each(|name| self.walk.mutate_name(name, &reason));
        }
    }

    fn parenthesized(&mut self) -> Option<Value<'s>> {
        self.within(|reader| {
            if reader.text.byte() == b')' {
                return Some(OTHER);
            }
            let value = reader.expression()?;
            reader.text.space();
            if reader.text.byte() == b')' {
                return Some(value);
            }
            while reader.more(b')')? {
                reader.expression()?;
            }
            Some(OTHER)
        })
    }

    fn list(&mut self) -> Option<Value<'s>> {
        self.within(|reader| {
            let mut more = reader.text.byte() != b']';
            while more {
                reader.expression()?;
                more = reader.more(b']')?;
            }
            Some(OTHER)
        })
    }

    /// A set, or a dictionary, whose keys are given to nobody.
    fn braced(&mut self) -> Option<Value<'s>> {
        self.within(|reader| {
            let (mut more, mut pairs) = (reader.text.byte() != b'}', None);
            while more {
                let given = reader.given.len();
                reader.expression()?;
                reader.text.space();
                let pair = reader.text.takes(b':');
                if *pairs.get_or_insert(pair) != pair {
                    return None;
                }
                if pair {
                    reader.given.truncate(given);
                    reader.text.space();
                    reader.expression()?;
                }
                more = reader.more(b'}')?;
            }
            Some(OTHER)
        })
    }

    /// A name or a constant.
    fn word(&mut self) -> Option<Value<'s>> {
        if matches!(self.text.byte(), b'N' | b'T' | b'F') && matches!(self.text.peek_word(), "None" | "True" | "False")
        {
            self.text.at += self.text.peek_word().len();
            return (!is_quote(self.text.byte())).then_some(OTHER);
        }
        let (name, range) = self.text.name_and_place()?;
        self.read(name, range);
        if self.calls > 0 {
            self.given.push(name);
        }
        Some(Value { base: Some(name), form: Form::Name })
    }

    fn read(&mut self, name: &str, range: Range) {
        if !self.ahead {
            self.walk.read_name(name, range);
        }
    }
}
