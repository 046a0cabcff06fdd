//! Scopes of Python: the variable that a name means at a place.

use super::super::facts::Symbol;
use rustc_hash::FxHashSet;

/// The kind of a scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Module,
    Class,
    /// A function or lambda.
    Function,
    /// A comprehension, which runs at once.
    Comprehension,
    /// Type parameters, which see the class that they are in.
    TypeParameters,
}

/// One scope of the source.
#[derive(Debug)]
pub(super) struct Scope {
    pub(super) kind: Kind,
    /// The module's is 0.
    pub(super) id: u32,
    pub(super) locals: FxHashSet<Symbol>,
    pub(super) globals: FxHashSet<Symbol>,
    pub(super) nonlocals: FxHashSet<Symbol>,
}

/// The variable that a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Variable {
    /// A variable of the steps' namespace.
    Global,
    /// A variable of the class whose body runs; before the class has bound it, the namespace's.
    OfClass(u32),
    /// A local of a function, invisible outside.
    Local,
}

/// The scopes that are open within the module's, which keeps no names and is not among them.
#[derive(Default)]
pub(super) struct Scopes {
    open: Vec<Scope>,
    /// Names of the classes that are open, for names with two underscores before them.
    classes: Vec<String>,
    count: u32,
}

impl Scope {
    /// A scope that is not open, to collect names in.
    pub(super) fn unnamed(kind: Kind) -> Self {
        Self::new(kind, 0)
    }

    fn new(kind: Kind, id: u32) -> Self {
        let none = FxHashSet::default;
        Self { kind, id, locals: none(), globals: none(), nonlocals: none() }
    }
}

impl Scopes {
    /// Opens a scope; its names are filled in by the caller.
    pub(super) fn open(&mut self, kind: Kind) -> &mut Scope {
        self.count += 1;
        let at = self.open.len();
        self.open.push(Scope::new(kind, self.count));
        &mut self.open[at]
    }

    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    pub(super) fn enter_class(&mut self, name: &str) {
        self.classes.push(name.to_owned());
    }

    pub(super) fn leave_class(&mut self) {
        self.classes.pop();
    }

    /// The name in Python's mangled form: within a class, `__name` gets the class's name as a prefix.
    pub(super) fn mangled(&self, name: &str) -> Option<String> {
        let class = self.classes.last()?.trim_start_matches('_');
        let private = name.starts_with("__") && !name.ends_with("__") && !class.is_empty();
        private.then(|| format!("_{class}{name}"))
    }

    pub(super) fn kind(&self) -> Kind {
        self.open.last().map_or(Kind::Module, |scope| scope.kind)
    }

    /// True at a place whose nearest scope that is no comprehension is a function.
    pub(super) fn in_function(&self) -> bool {
        self.open
            .iter()
            .rev()
            .find(|scope| scope.kind != Kind::Comprehension)
            .is_some_and(|scope| scope.kind == Kind::Function)
    }

    /// The variable that a name means at the walk's present place.
    pub(super) fn variable(&self, symbol: Symbol) -> Variable {
        self.variable_from(self.open.len(), symbol)
    }

    /// The variable that a name bound by `:=` means: it is not local to a comprehension.
    pub(super) fn variable_of_walrus(&self, symbol: Symbol) -> Variable {
        let kept = self.open.iter().rposition(|scope| scope.kind != Kind::Comprehension);
        self.variable_from(kept.map_or(0, |at| at + 1), symbol)
    }

    /// The variable that it means in the innermost of the first `depth` scopes.
    fn variable_from(&self, depth: usize, symbol: Symbol) -> Variable {
        let mut sees_class = true;
        for scope in self.open[..depth].iter().rev() {
            let class = scope.kind == Kind::Class;
            if class && !sees_class {
                continue;
            }
            if scope.globals.contains(&symbol) {
                return Variable::Global;
            }
            if scope.locals.contains(&symbol) {
                return if class { Variable::OfClass(scope.id) } else { Variable::Local };
            }
            sees_class = scope.kind == Kind::TypeParameters && sees_class;
        }
        Variable::Global
    }
}
