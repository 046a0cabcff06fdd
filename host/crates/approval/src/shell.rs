//! The check that a command line is one plain command, with its program.
//!
//! Two readers have to agree: our own scanner, which knows quotes and refuses every character with a meaning for a
//! shell, and the grammar of bash. A text that either does not know, hidden characters, and every program that starts
//! other programs are not plain. Nothing is expanded and nothing is run.

use crate::visible::is_plain;
use longhaul_core::text::is_hidden;
use tree_sitter::{Node, Parser, Tree};

/// Longest accepted line, in bytes. A person does not read a longer one to its end.
const LINE_BYTES_MAX: usize = 4_096;

/// Programs that run their arguments, input or files as code. They are asked about each time.
///
/// Build tools are not among them: they run code of the tree, as a person who allows `cargo` knows.
const RUN_OTHERS: &[&str] = &[
    // Shells, and words of shells.
    ".",
    "ash",
    "bash",
    "busybox",
    "builtin",
    "command",
    "coproc",
    "csh",
    "dash",
    "elvish",
    "eval",
    "exec",
    "fish",
    "ksh",
    "mksh",
    "nu",
    "powershell",
    "pwsh",
    "rbash",
    "sh",
    "source",
    "tcsh",
    "toybox",
    "trap",
    "xonsh",
    "zsh",
    "alias",
    "export",
    "function",
    "set",
    "time",
    // Wrappers.
    "at",
    "batch",
    "bwrap",
    "catchsegv",
    "chroot",
    "chrt",
    "crontab",
    "dbus-run-session",
    "doas",
    "docker",
    "entr",
    "env",
    "expect",
    "fakeroot",
    "faketime",
    "firejail",
    "flock",
    "gdb",
    "ionice",
    "kubectl",
    "ld.so",
    "lldb",
    "ltrace",
    "lxc",
    "nerdctl",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pipx",
    "pkexec",
    "podman",
    "prlimit",
    "proot",
    "run-parts",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "socat",
    "ssh",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "timeout",
    "tmux",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "wine",
    "xargs",
    "xdg-open",
    "nc",
    "ncat",
    "netcat",
    // Interpreters, editors and pagers.
    "awk",
    "bun",
    "deno",
    "ed",
    "elixir",
    "emacs",
    "erl",
    "ex",
    "gawk",
    "ghci",
    "groovy",
    "guile",
    "irb",
    "java",
    "jshell",
    "julia",
    "less",
    "ftp",
    "gnuplot",
    "lua",
    "luajit",
    "m4",
    "man",
    "mariadb",
    "mawk",
    "more",
    "mysql",
    "nawk",
    "node",
    "nodejs",
    "nvim",
    "ocaml",
    "osascript",
    "perl",
    "php",
    "psql",
    "pypy",
    "python",
    "r",
    "racket",
    "raku",
    "rscript",
    "ruby",
    "runghc",
    "scala",
    "sed",
    "sqlite",
    "tclsh",
    "telnet",
    "vi",
    "view",
    "vim",
    "wish",
];

/// Programs of that list with further installed names, such as `bash-static` and `python3-dbg`.
const WITH_VARIANTS: &[&str] = &[
    "ash", "bash", "busybox", "dash", "fish", "gawk", "ksh", "lua", "mawk", "node", "perl", "php", "pwsh", "python",
    "ruby", "sqlite", "tcsh", "toybox", "zsh",
];

/// Words that make a program start others, write anywhere, or do so later.
const START_OTHERS: &[(&str, &[&str])] = &[
    ("find", &["-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    (
        "git",
        &[
            "-c",
            "--config-env",
            "--exec-path",
            "--upload-pack",
            "--receive-pack",
            "--exec",
            "-x",
            "--extcmd",
            "--ext-diff",
            "-O",
            "--open-files-in-pager",
            "--template",
            "config",
            "filter-branch",
            "foreach",
            "bisect",
            "difftool",
            "mergetool",
            "ext::",
            "daemon",
            "hook",
            "send-email",
            "instaweb",
        ],
    ),
    (
        "tar",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--rsh-command",
            "--info-script",
            "--new-volume-script",
        ],
    ),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("scp", &["-S", "-o"]),
    ("sftp", &["-S", "-o"]),
    ("sort", &["--compress-program"]),
    ("split", &["--filter"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("go", &["-exec", "-toolexec", "-vettool"]),
    ("cargo", &["--config"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("curl", &["-K", "--config"]),
    ("wget", &["--use-askpass", "-e", "--execute"]),
];

/// One command of one program, with its words as the program gets them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellCommand {
    /// The program as written in the line, with its path.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// The reason why a line is not one plain command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPlain {
    /// The line is empty.
    #[error("it has no command")]
    Empty,
    /// The line is longer than a person reads.
    #[error("it has {0} bytes of at most {LINE_BYTES_MAX}")]
    TooLong(usize),
    /// An invisible or deceptive character.
    #[error("it has a character that hides, U+{0:04X}")]
    Hidden(u32),
    /// A character with a meaning for a shell: chaining, redirection, substitution, a pattern.
    #[error("it has `{0}`, which a shell gives a meaning")]
    Meaning(char),
    /// A quote that is not closed.
    #[error("a quote is not closed")]
    Unclosed,
    /// The two readers do not agree, or the grammar finds more than one command in it.
    #[error("it is not one plain command by the grammar of the shell")]
    Grammar,
    /// The program is no plain name: it is quoted, assigned to, or has unusual characters.
    #[error("`{0}` is no plain name of a program")]
    Program(String),
    /// The program runs others.
    #[error("`{0}` runs what its arguments say")]
    RunsOthers(String),
    /// A word tells the program to run others.
    #[error("`{word}` tells `{program}` to start something else")]
    StartsOthers {
        /// The program.
        program: String,
        /// The word.
        word: String,
    },
}

/// Reads a command line.
///
/// # Errors
/// Every [`NotPlain`].
pub fn command_line(line: &str) -> Result<ShellCommand, NotPlain> {
    commanded(plain_words(line)?)
}

/// Reads a list of words that does not go through a shell.
///
/// # Errors
/// [`NotPlain::Empty`], [`NotPlain::Hidden`], and those about the program and its words.
pub fn command_words(words: &[String]) -> Result<ShellCommand, NotPlain> {
    commanded(plain_list(words)?)
}

/// The words of one plain command, with any program. See [`command_line`].
pub(crate) fn plain_words(line: &str) -> Result<Vec<String>, NotPlain> {
    let words = scanned(line)?;
    let nodes = parsed(line).ok_or(NotPlain::Grammar)?;
    let same = nodes.len() == words.len()
        && nodes.iter().zip(&words).all(|(node, word)| scanned(node).is_ok_and(|one| one == [word.clone()]));
    if !same {
        return Err(NotPlain::Grammar);
    }
    // A quoted name may be one program for a reader and another for a shell with aliases.
    if nodes.first() != words.first() {
        return Err(NotPlain::Program(nodes[0].clone()));
    }
    named(words)
}

/// The words of a list that does not go through a shell and that is one plain command, with any program.
///
/// # Errors
/// [`NotPlain::Empty`], [`NotPlain::Hidden`] and [`NotPlain::Program`].
pub(crate) fn plain_list(words: &[String]) -> Result<Vec<String>, NotPlain> {
    let hidden = words.iter().flat_map(|word| word.chars()).find(|char| is_hidden(*char));
    if let Some(char) = hidden {
        return Err(NotPlain::Hidden(char.into()));
    }
    named(words.to_vec())
}

/// Words of which the first is a plain name of a program.
fn named(words: Vec<String>) -> Result<Vec<String>, NotPlain> {
    let program = words.first().ok_or(NotPlain::Empty)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-' | '/');
    if program.is_empty() || program.starts_with('-') || !program.chars().all(plain) {
        return Err(NotPlain::Program(program.clone()));
    }
    Ok(words)
}

/// True when a program runs its arguments, input or files as code.
pub(crate) fn runs_others(program: &str) -> bool {
    let name = base_name(program);
    let is_variant = |known: &&str| {
        let rest = name.strip_prefix(*known).unwrap_or_default();
        rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').starts_with(['-', '_'])
            || rest.starts_with('.')
    };
    RUN_OTHERS.contains(&name.as_str()) || WITH_VARIANTS.iter().any(is_variant)
}

/// True when a word makes this program start another one.
pub(crate) fn starts_others_of(program: &str, word: &str) -> bool {
    starts_others(&base_name(program), word)
}

fn commanded(words: Vec<String>) -> Result<ShellCommand, NotPlain> {
    check_plain(&words)?;
    let mut words = words.into_iter();
    let program = words.next().ok_or(NotPlain::Empty)?;
    Ok(ShellCommand { program, arguments: words.collect() })
}

/// Refuses a program that runs others, and a word that makes it do so.
pub(crate) fn check_plain(words: &[String]) -> Result<(), NotPlain> {
    let (program, arguments) = words.split_first().ok_or(NotPlain::Empty)?;
    if runs_others(program) {
        return Err(NotPlain::RunsOthers(program.clone()));
    }
    let name = base_name(program);
    match arguments.iter().find(|word| starts_others(&name, word)) {
        Some(word) => Err(NotPlain::StartsOthers { program: program.clone(), word: word.clone() }),
        None => Ok(()),
    }
}

/// The name without its path, its version and its case: `/usr/bin/Python3.12` is `python`.
fn base_name(program: &str) -> String {
    let name = program.rsplit('/').next().unwrap_or(program).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if bare.is_empty() { name.to_owned() } else { bare.to_owned() }
}

fn starts_others(program: &str, word: &str) -> bool {
    // Letters of tar are combined, with a dash or without: `xIf`.
    if matches!(program, "tar" | "bsdtar" | "gtar")
        && !word.starts_with("--")
        && word.trim_start_matches('-').chars().all(char::is_alphabetic)
        && word.contains(['I', 'F'])
    {
        return true;
    }
    let program = if matches!(program, "bsdtar" | "gtar") { "tar" } else { program };
    let listed = START_OTHERS.iter().find(|(name, _)| *name == program).map_or(&[][..], |(_, words)| words);
    listed.iter().any(|listed| is_or_abbreviates(word, listed))
}

/// True when a word is that option, in any spelling of options.
fn is_or_abbreviates(word: &str, option: &str) -> bool {
    match (option.strip_prefix("--"), word.strip_prefix("--")) {
        // A long option may be abbreviated as long as it stays unambiguous.
        (Some(option), Some(word)) => {
            let name = word.split('=').next().unwrap_or(word);
            name.len() >= 2 && option.starts_with(name)
        }
        (Some(_), None) | (None, Some(_)) => false,
        // A short one may have its value, or other letters, after it.
        (None, None) if option.len() == 2 && option.starts_with('-') => {
            word.starts_with('-') && word[1..].contains(&option[1..])
        }
        (None, None) if option.ends_with("::") => word.contains(option),
        (None, None) => word == option,
    }
}

/// The unquoted words of a line by our own scanner.
fn scanned(line: &str) -> Result<Vec<String>, NotPlain> {
    if line.len() > LINE_BYTES_MAX {
        return Err(NotPlain::TooLong(line.len()));
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in line.chars() {
        if is_hidden(char) {
            return Err(NotPlain::Hidden(char.into()));
        }
        match (quote, char) {
            (None, ' ') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (Some(open), char) if open == char => quote = None,
            (Some('"'), '$' | '`' | '\\' | '!') => return Err(NotPlain::Meaning(char)),
            (None, char) if !is_plain(char) => return Err(NotPlain::Hidden(char.into())),
            (None, char) if has_meaning(char) || (char == '=' && word.is_none()) => {
                return Err(NotPlain::Meaning(char));
            }
            (_, char) => word.get_or_insert_default().push(char),
        }
    }
    if quote.is_some() {
        return Err(NotPlain::Unclosed);
    }
    words.extend(word);
    if words.is_empty() { Err(NotPlain::Empty) } else { Ok(words) }
}

/// True when the character has a meaning for some shell outside quotes.
fn has_meaning(char: char) -> bool {
    matches!(
        char,
        '|' | '&'
            | ';'
            | '<'
            | '>'
            | '('
            | ')'
            | '$'
            | '`'
            | '\\'
            | '{'
            | '}'
            | '['
            | ']'
            | '*'
            | '?'
            | '!'
            | '#'
            | '^'
            | '~'
    )
}

/// The words of a line by the grammar, as written; none when it is not one simple command.
fn parsed(line: &str) -> Option<Vec<String>> {
    let tree = tree(line)?;
    let root = tree.root_node();
    if root.has_error() || root.kind() != "program" || root.child_count() != 1 {
        return None;
    }
    let command = root.child(0).filter(|node| node.kind() == "command" && !node.is_missing())?;
    let mut cursor = command.walk();
    let parts: Vec<Node<'_>> = command.children(&mut cursor).collect();
    let (name, arguments) = parts.split_first()?;
    let known = |node: &Node<'_>| matches!(node.kind(), "word" | "number" | "string" | "raw_string" | "concatenation");
    if name.kind() != "command_name" || !arguments.iter().all(known) {
        return None;
    }
    parts.iter().map(|node| node.utf8_text(line.as_bytes()).ok().map(str::to_owned)).collect()
}

fn tree(line: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    parser.parse(line, None)
}
