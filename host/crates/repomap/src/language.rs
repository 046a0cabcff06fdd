//! The parsed languages, and the nodes of their grammars that define something.

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Bash,
    C,
    Go,
    Java,
    JavaScript,
    Python,
    Rust,
    TypeScript,
    Tsx,
}

/// The kind of a defining node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It may have definitions within: a class, a trait, a module.
    Holder,
    /// Its content is private: a function, a type.
    Leaf,
    /// A variable, which counts when its value is a function or a class.
    Variable,
    /// The definition of a function or a type in C, whose name is within its declarators.
    Declared,
}

/// The language of a path, by the end of its name.
pub(crate) fn of(path: &str) -> Option<Language> {
    let name = path.rsplit('/').next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.ends_with(".min") {
        return None;
    }
    Some(match extension {
        "bash" | "sh" => Language::Bash,
        "c" | "h" => Language::C,
        "go" => Language::Go,
        "java" => Language::Java,
        "cjs" | "js" | "jsx" | "mjs" => Language::JavaScript,
        "py" | "pyi" => Language::Python,
        "rs" => Language::Rust,
        "cts" | "mts" | "ts" => Language::TypeScript,
        "tsx" => Language::Tsx,
        _ => return None,
    })
}

impl Language {
    pub(crate) fn grammar(self) -> tree_sitter::Language {
        match self {
            Self::Bash => tree_sitter_bash::LANGUAGE.into(),
            Self::C => tree_sitter_c::LANGUAGE.into(),
            Self::Go => tree_sitter_go::LANGUAGE.into(),
            Self::Java => tree_sitter_java::LANGUAGE.into(),
            Self::JavaScript => tree_sitter_javascript::LANGUAGE.into(),
            Self::Python => tree_sitter_python::LANGUAGE.into(),
            Self::Rust => tree_sitter_rust::LANGUAGE.into(),
            Self::TypeScript => tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into(),
            Self::Tsx => tree_sitter_typescript::LANGUAGE_TSX.into(),
        }
    }

    /// The kind of definition of a node; none for other nodes.
    pub(crate) fn sort(self, kind: &str) -> Option<Sort> {
        use Sort::{Declared, Holder, Leaf, Variable};
        Some(match (self, kind) {
            (Self::Bash, "function_definition") => Leaf,
            (Self::C, "function_definition" | "type_definition") => Declared,
            (Self::C, "struct_specifier" | "union_specifier" | "enum_specifier" | "preproc_function_def") => Leaf,
            (Self::Go, "function_declaration" | "method_declaration" | "type_spec") => Leaf,
            (
                Self::Java,
                "class_declaration"
                | "interface_declaration"
                | "record_declaration"
                | "enum_declaration"
                | "annotation_type_declaration",
            ) => Holder,
            (Self::Java, "method_declaration" | "constructor_declaration") => Leaf,
            (Self::Python, "class_definition") => Holder,
            (Self::Python, "function_definition") => Leaf,
            (Self::Rust, "impl_item" | "trait_item" | "mod_item") => Holder,
            (
                Self::Rust,
                "function_item"
                | "function_signature_item"
                | "struct_item"
                | "enum_item"
                | "union_item"
                | "type_item"
                | "macro_definition",
            ) => Leaf,
            (
                Self::JavaScript | Self::TypeScript | Self::Tsx,
                "class_declaration" | "abstract_class_declaration" | "internal_module" | "module",
            ) => Holder,
            (
                Self::JavaScript | Self::TypeScript | Self::Tsx,
                "function_declaration"
                | "generator_function_declaration"
                | "method_definition"
                | "function_signature"
                | "abstract_method_signature"
                | "interface_declaration"
                | "type_alias_declaration"
                | "enum_declaration",
            ) => Leaf,
            (Self::JavaScript | Self::TypeScript | Self::Tsx, "variable_declarator") => Variable,
            _ => return None,
        })
    }
}
