//! The modules of a crate, read from its text: the items, the imports and the paths of each.
//!
//! The text is read as tokens, so that the bodies of macros are read as code. Macros are not expanded, and what is
//! compiled for tests alone is left out, with its files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::tokens::{Attribute, ITEMS, Tokens};

/// The place of a module among those of its crate.
pub type Id = usize;

/// The module that `crate` names.
pub const ROOT: Id = 0;

#[derive(Default)]
pub struct Module {
    /// Names from the root of the crate; none for the root.
    pub path: Vec<String>,
    /// The file around an inline module.
    pub file: PathBuf,
    pub parent: Option<Id>,
    pub children: BTreeMap<String, Id>,
    /// Names of items of any kind that are defined here.
    pub items: BTreeSet<String>,
    /// Plainly public types that are defined here, with their lines.
    pub public_types: Vec<(String, usize)>,
    /// The local name of a `use`, and its path.
    pub imports: BTreeMap<String, Vec<String>>,
    /// Paths whose every name is in scope.
    pub globs: Vec<Vec<String>>,
    pub uses: Vec<Use>,
    /// Paths of two segments or more in code and attributes, with their lines.
    pub mentions: Vec<(Vec<String>, usize)>,
}

/// One name of a `use`.
pub struct Use {
    /// As written, with `*` at its end for a glob; it begins with `::` where it can only name another crate.
    pub path: Vec<String>,
    pub line: usize,
    /// True of `pub use` and of `pub(...) use`.
    pub public: bool,
}

/// Reads the crate that begins with this file; `source` tells the text of a file, if there is one.
pub fn read(root: &Path, source: &dyn Fn(&Path) -> Option<String>) -> Vec<Module> {
    let text = source(root).unwrap_or_else(|| panic!("{}: no such file", root.display()));
    let folder = root.parent().map(Path::to_owned).unwrap_or_default();
    let mut reader = Reader { source, modules: Vec::new() };
    reader.file(Module { file: root.to_owned(), ..Module::default() }, &text, &folder);
    reader.modules
}

struct Reader<'a> {
    source: &'a dyn Fn(&Path) -> Option<String>,
    modules: Vec<Module>,
}

/// Where the tokens stand that are read.
#[derive(Clone, Copy)]
struct Scope<'a> {
    module: Id,
    /// The directory of the files of the module's children.
    folder: &'a Path,
    /// True between the items of the module, false within one of them.
    between_items: bool,
}

impl Reader<'_> {
    fn file(&mut self, module: Module, text: &str, folder: &Path) {
        let tokens = text.parse::<TokenStream>();
        let tokens = tokens.unwrap_or_else(|error| panic!("{}: {error}", module.file.display()));
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        self.module(module, &tokens, folder);
    }

    fn module(&mut self, module: Module, tokens: &[TokenTree], folder: &Path) {
        let id = self.modules.len();
        if let (Some(parent), Some(name)) = (module.parent, module.path.last()) {
            self.modules[parent].children.insert(name.clone(), id);
        }
        self.modules.push(module);
        self.scan(Scope { module: id, folder, between_items: true }, Tokens(tokens));
    }

    fn scan(&mut self, scope: Scope<'_>, tokens: Tokens<'_>) {
        let mut file = None;
        let mut at = 0;
        while at < tokens.len() {
            if let Some(attribute) = tokens.attribute(at) {
                file = file_of(Tokens(&attribute.body)).or(file);
                at = self.attribute(scope, tokens, &attribute);
            } else if tokens.is(at, "use") && !tokens.is(at + 1, "<") {
                at = self.import(scope, tokens, at);
            } else if is_module(tokens, at)
                && let Some(name) = tokens.word(at + 1)
            {
                self.child(scope, name, tokens.group(at + 2, Delimiter::Brace), file.take());
                at += 3;
            } else {
                at = self.code(scope, tokens, at);
            }
        }
    }

    /// The place from which to read on.
    fn attribute(&mut self, scope: Scope<'_>, tokens: Tokens<'_>, attribute: &Attribute) -> usize {
        let body = Tokens(&attribute.body);
        if body.is_test_only() {
            return if attribute.inner { tokens.len() } else { tokens.after_item(attribute.next) };
        }
        if !body.is(0, "doc") {
            let paths = body.quoted().into_iter().filter_map(|(text, line)| Some((quoted_path(&text)?, line)));
            self.modules[scope.module].mentions.extend(paths);
            self.scan(Scope { between_items: false, ..scope }, body);
        }
        attribute.next
    }

    fn import(&mut self, scope: Scope<'_>, tokens: Tokens<'_>, at: usize) -> usize {
        let end = (at..tokens.len()).find(|&at| tokens.is(at, ";")).unwrap_or(tokens.len());
        let module = &mut self.modules[scope.module];
        for leaf in leaves(&tokens.0[at + 1..end], &[]) {
            if let Some((last, above)) = leaf.path.split_last()
                && last == "*"
            {
                module.globs.push(above.to_vec());
            } else if leaf.name != "_" {
                module.imports.entry(leaf.name).or_insert_with(|| leaf.path.clone());
            }
            module.uses.push(Use { path: leaf.path, line: leaf.line, public: is_public(tokens, at) });
        }
        end + 1
    }

    fn child(&mut self, scope: Scope<'_>, name: String, body: Option<Vec<TokenTree>>, file: Option<String>) {
        let parent = &self.modules[scope.module];
        let path = [parent.path.as_slice(), std::slice::from_ref(&name)].concat();
        let child = Module { path, file: parent.file.clone(), parent: Some(scope.module), ..Module::default() };
        let folder = scope.folder.join(&name);
        if let Some(body) = body {
            return self.module(child, &body, &folder);
        }
        let places = match file {
            Some(file) => {
                let beside = if self.is_inline(scope.module) { Some(scope.folder) } else { parent.file.parent() };
                let file = beside.unwrap_or(Path::new("")).join(file);
                let folder = file.parent().map(Path::to_owned).unwrap_or_default();
                vec![(file, folder)]
            }
            None => vec![(folder.with_extension("rs"), folder.clone()), (folder.join("mod.rs"), folder)],
        };
        let source = self.source;
        let Some((file, folder, text)) =
            places.into_iter().find_map(|(file, folder)| source(&file).map(|text| (file, folder, text)))
        else {
            panic!("{}: no file for `mod {name}`", child.file.display());
        };
        self.file(Module { file, ..child }, &text, &folder);
    }

    fn is_inline(&self, module: Id) -> bool {
        let module = &self.modules[module];
        module.parent.is_some_and(|parent| self.modules[parent].file == module.file)
    }

    /// Reads what is no import, attribute or module: brackets with all that they hold, or a path.
    fn code(&mut self, scope: Scope<'_>, tokens: Tokens<'_>, at: usize) -> usize {
        if let Some(TokenTree::Group(group)) = tokens.0.get(at) {
            let inside: Vec<TokenTree> = group.stream().into_iter().collect();
            // `pub(in path)` limits the visibility of an item, and imports none.
            if !(at > 0 && tokens.is(at - 1, "pub") && Tokens(&inside).is(0, "in")) {
                self.scan(Scope { between_items: false, ..scope }, Tokens(&inside));
            }
            return at + 1;
        }
        self.item(scope, tokens, at);
        let Some((path, next)) = tokens.path(at) else { return at + 1 };
        if path.len() > 1 {
            self.modules[scope.module].mentions.push((path, tokens.line(at)));
        }
        next
    }

    fn item(&mut self, scope: Scope<'_>, tokens: Tokens<'_>, at: usize) {
        let module = &mut self.modules[scope.module];
        let is_macro = tokens.is(at, "macro_rules") && tokens.is(at + 1, "!");
        if scope.between_items && (is_macro || tokens.is_any(at, &ITEMS)) {
            let skipped = usize::from(is_macro || tokens.is(at + 1, "mut"));
            module.items.extend(tokens.word(at + 1 + skipped));
        }
        let before = if at > 0 && tokens.is(at - 1, "unsafe") { at - 1 } else { at };
        if before > 0
            && tokens.is(before - 1, "pub")
            && tokens.is_any(at, &["struct", "enum", "union", "trait", "type"])
            && let Some(name) = tokens.word(at + 1)
        {
            module.public_types.push((name, tokens.line(at)));
        }
    }
}

/// True where `mod name;` or `mod name {}` begins.
fn is_module(tokens: Tokens<'_>, at: usize) -> bool {
    tokens.is(at, "mod") && (tokens.is(at + 2, ";") || tokens.group(at + 2, Delimiter::Brace).is_some())
}

/// True where `pub` or `pub(...)` ends before this place.
fn is_public(tokens: Tokens<'_>, at: usize) -> bool {
    let parted = at >= 2 && tokens.group(at - 1, Delimiter::Parenthesis).is_some() && tokens.is(at - 2, "pub");
    parted || (at >= 1 && tokens.is(at - 1, "pub"))
}

/// The file that the attribute `path` names.
fn file_of(attribute: Tokens<'_>) -> Option<String> {
    let named = attribute.is(0, "path") && attribute.is(1, "=");
    attribute.quoted().into_iter().next().filter(|_| named).map(|(file, _)| file)
}

/// The path that a text in an attribute is, such as that of `serde(with = "crate::time")`.
fn quoted_path(text: &str) -> Option<Vec<String>> {
    let is_name = |segment: &str| {
        segment.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
            && segment.chars().all(|char| char.is_ascii_alphanumeric() || char == '_')
    };
    let path: Vec<String> = text.split("::").map(str::to_owned).collect();
    (path.len() > 1 && path.iter().all(|segment| is_name(segment))).then_some(path)
}

struct Leaf {
    path: Vec<String>,
    /// The name of the path's end in this module; `_` where it has none.
    name: String,
    line: usize,
}

/// The names that the tree of a `use` ends in, each with its whole path.
fn leaves(tree: &[TokenTree], above: &[String]) -> Vec<Leaf> {
    let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    tree.split(is_comma).flat_map(|branch| branch_leaves(Tokens(branch), above)).collect()
}

fn branch_leaves(branch: Tokens<'_>, above: &[String]) -> Vec<Leaf> {
    let mut path = above.to_vec();
    if branch.separator(0) {
        path.push("::".to_owned());
    }
    let mut line = 0;
    let mut name = None;
    for at in 0..branch.len() {
        if let Some(inside) = branch.group(at, Delimiter::Brace) {
            return leaves(&inside, &path);
        }
        if branch.is(at, "as") {
            name = branch.word(at + 1);
            break;
        }
        let segment = if branch.is(at, "*") { Some("*".to_owned()) } else { branch.word(at) };
        if segment.is_some() {
            line = branch.line(at);
        }
        path.extend(segment);
    }
    if line == 0 {
        return Vec::new();
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = name.or_else(|| path.last().cloned()).unwrap_or_default();
    vec![Leaf { path, name, line }]
}
