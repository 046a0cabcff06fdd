//! The reviewed table of commands: program, subcommand and the shape of the further words.
//!
//! `a` allows such a form for the rest of a run. A form lists the options that keep the program to its usual function:
//! none of them starts another program, loads configuration or code by a path, writes a named file, or leads out of the
//! tree. Build tools and test runners run code of the tree, as a person who allows one knows; programs that only seem
//! to read, but load a plugin, a compiler or a module from the tree, are marked as such. A command outside of the table
//! is allowed only in exactly the words that a person saw. Refuses abbreviated options.

/// One form of a command.
#[derive(Debug)]
pub(crate) struct Form {
    /// The program and the words after it that make the command.
    command: &'static str,
    /// Its options; one that ends in `=` takes a value, and `-N` is a number.
    options: &'static str,
    /// The further words that may follow.
    rest: Rest,
    /// Its greatest effect, for the person who allows it.
    pub(crate) does: &'static str,
}

/// The words that may follow beside options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// Words that stay inside the tree: relative paths, revisions, names.
    Paths,
    /// Any one word, then paths.
    PatternAndPaths,
    /// Lines for `sed`, as in `10,20p`, then paths.
    LinesAndPaths,
    /// Any words that are no options.
    Words,
    /// Paths, and after `--` any arguments for the tree's own program.
    PathsAndOwnArguments,
    /// After `--` levels of lints, as in `-D warnings`.
    Lints,
    /// Exactly the words of the command that was allowed.
    Same,
}

use Rest::{LinesAndPaths, Lints, Nothing, Paths, PathsAndOwnArguments, PatternAndPaths, Same, Words};

const READS: &str = "reads files of the tree";
const READS_HISTORY: &str = "reads the history of a repository";
const CHANGES_REPOSITORY: &str = "changes a repository of the tree, and sends nothing";
const BUILDS: &str = "builds and runs what is in the tree";
const LOADS: &str = "reads the tree, and may run code of it that its configuration or its directory names";
const CHECKS: &str = "checks source files of the tree, and mends them where told";

const CARGO: &str = "--workspace --all --lib --bins --tests --benches --examples --all-targets --all-features \
    --no-default-features --release -r --locked --offline --frozen --quiet -q --verbose -v -vv --no-run --no-fail-fast \
    --keep-going --doc -p= --package= --exclude= --features= -F= --test= --bin= --example= --bench= --profile= --target= \
    -j= --jobs= --message-format= --color=";
const PYTEST: &str = "-q -v -x -s -l -k= -m= -r= -n= --tb= --maxfail= --lf --ff --durations= --no-header --collect-only \
    --co --color= --disable-warnings --no-summary --exitfirst --last-failed --failed-first --verbose --quiet";
const GIT_LOG: &str = "--oneline -n= -N --max-count= --stat --shortstat --numstat --name-only --name-status --graph --all \
    --decorate --no-decorate --format= --pretty= --author= --since= --until= --after= --before= --grep= -S= -G= -L= -p -u \
    -i --patch --no-patch -s --follow --merges --no-merges --reverse --abbrev-commit --date= --no-color --color= \
    --first-parent -U= --unified= -w -b -M -C --no-ext-diff --no-textconv";
const GIT_DIFF: &str = "--stat --cached --staged --name-only --name-status --numstat --shortstat -w -b -U= --unified= \
    --word-diff --no-color --color= --no-ext-diff --no-textconv --check --minimal -M -C -p -u --patch --diff-filter=";
const GREP: &str = "-r -R -n -i -v -w -x -l -L -c -o -h -H -s -q -E -F -P -G -I -a -A= -B= -C= -m= --include= --exclude= \
    --exclude-dir= --color= --recursive --line-number --ignore-case --count --only-matching --word-regexp";
const GO: &str = "-v -run= -count= -short -race -cover -bench= -benchtime= -benchmem -timeout= -p= -parallel= -failfast \
    -json -tags= -list= -skip= -shuffle= -x -n -a";

#[rustfmt::skip]
const FORMS: &[Form] = &[
    // Readers. `sort`, `uniq` and `tree` can write to a named file, so those options are missing.
    Form { command: "ls", options: "-a -A -l -h -R -1 -d -F -t -r -S -s -i -p --all --color= --recursive", rest: Paths, does: READS },
    Form { command: "cat", options: "-n -A -b -s -E -T", rest: Paths, does: READS },
    Form { command: "head", options: "-n= -c= -q -v -N --lines= --bytes=", rest: Paths, does: READS },
    Form { command: "tail", options: "-n= -c= -q -v -N --lines= --bytes=", rest: Paths, does: READS },
    Form { command: "wc", options: "-l -w -c -m -L", rest: Paths, does: READS },
    Form { command: "diff", options: "-u -r -q -w -b -B -N -y -U= --brief --unified=", rest: Paths, does: READS },
    Form { command: "cmp", options: "-s -l", rest: Paths, does: READS },
    Form { command: "sort", options: "-n -r -u -f -h -V -k= -t=", rest: Paths, does: READS },
    Form { command: "cut", options: "-d= -f= -c= -b= -s", rest: Paths, does: READS },
    Form { command: "stat", options: "-c= -L", rest: Paths, does: READS },
    Form { command: "du", options: "-s -h -a -d= --max-depth= -c", rest: Paths, does: READS },
    Form { command: "tree", options: "-a -d -f -L= -I= -P= --dirsfirst", rest: Paths, does: READS },
    Form { command: "realpath", options: "", rest: Paths, does: READS },
    Form { command: "grep", options: GREP, rest: PatternAndPaths, does: READS },
    Form { command: "egrep", options: GREP, rest: PatternAndPaths, does: READS },
    Form { command: "fgrep", options: GREP, rest: PatternAndPaths, does: READS },
    // Without `--pre`, `-z` and similar ones, which start programs on each file.
    Form { command: "rg", options: "-n -i -S -s -w -x -F -l -c -o -v -U -A= -B= -C= -g= -t= -T= -m= -u --hidden --no-ignore --glob= --type= --color= --no-heading --json --count --files-with-matches", rest: PatternAndPaths, does: READS },
    // Without `-exec`, `-ok`, `-delete`, `-fprint` and `-fls`.
    Form { command: "find", options: "-name= -iname= -path= -ipath= -type= -maxdepth= -mindepth= -size= -mtime= -mmin= -newer= -not -o -a -print -print0 -empty -prune", rest: Paths, does: READS },
    // Only lines by their numbers: the language of `sed` can start programs and write files.
    Form { command: "sed -n", options: "", rest: LinesAndPaths, does: READS },
    Form { command: "pwd", options: "-P -L", rest: Nothing, does: "says where it is" },
    Form { command: "echo", options: "-n", rest: Words, does: "prints its words" },
    Form { command: "basename", options: "", rest: Words, does: "prints a part of a word" },
    Form { command: "dirname", options: "", rest: Words, does: "prints a part of a word" },
    Form { command: "which", options: "-a", rest: Words, does: "says where programs are" },
    Form { command: "true", options: "", rest: Nothing, does: "does nothing" },
    Form { command: "nproc", options: "", rest: Nothing, does: "counts processors" },
    Form { command: "uname", options: "-a -s -r -m", rest: Nothing, does: "names the system" },
    Form { command: "mkdir", options: "-p -v", rest: Paths, does: "makes directories in the tree" },
    Form { command: "touch", options: "", rest: Paths, does: "makes empty files in the tree" },
    // Git without options before its subcommand (`-c`, `-C`, `--git-dir`, `--exec-path`), without `--output`,
    // `--no-index`, `--ext-diff` and `--textconv`, and without commands that reach a remote.
    Form { command: "git status", options: "-s --short -b --branch --porcelain -u= --untracked-files= --ignored --long -z -v", rest: Paths, does: READS_HISTORY },
    Form { command: "git log", options: GIT_LOG, rest: Paths, does: READS_HISTORY },
    Form { command: "git show", options: GIT_LOG, rest: Paths, does: READS_HISTORY },
    Form { command: "git diff", options: GIT_DIFF, rest: Paths, does: READS_HISTORY },
    Form { command: "git blame", options: "-L= -w -M -C -s -e", rest: Paths, does: READS_HISTORY },
    Form { command: "git grep", options: "-n -i -w -l -c -E -F -P --cached", rest: PatternAndPaths, does: READS_HISTORY },
    Form { command: "git ls-files", options: "-m -o -c -d -s -z --others --exclude-standard --cached --modified --deleted", rest: Paths, does: READS_HISTORY },
    Form { command: "git ls-tree", options: "-r -t -l --name-only", rest: Paths, does: READS_HISTORY },
    Form { command: "git rev-parse", options: "--short --abbrev-ref --show-toplevel --verify --is-inside-work-tree", rest: Paths, does: READS_HISTORY },
    Form { command: "git rev-list", options: "-n= -N --count --all --max-count=", rest: Paths, does: READS_HISTORY },
    Form { command: "git merge-base", options: "--is-ancestor", rest: Paths, does: READS_HISTORY },
    Form { command: "git describe", options: "--tags --always --dirty --long --all", rest: Paths, does: READS_HISTORY },
    Form { command: "git shortlog", options: "-s -n -e", rest: Paths, does: READS_HISTORY },
    Form { command: "git cat-file", options: "-p -t -s -e", rest: Paths, does: READS_HISTORY },
    Form { command: "git branch", options: "-a -v -vv -r --list --show-current --all --remotes", rest: Nothing, does: READS_HISTORY },
    Form { command: "git tag", options: "-l --list -n", rest: Nothing, does: READS_HISTORY },
    Form { command: "git remote", options: "-v", rest: Nothing, does: READS_HISTORY },
    Form { command: "git stash list", options: "", rest: Nothing, does: READS_HISTORY },
    Form { command: "git init", options: "-q --quiet -b= --initial-branch=", rest: Nothing, does: CHANGES_REPOSITORY },
    Form { command: "git add", options: "-A --all -u --update -v -n -N", rest: Paths, does: CHANGES_REPOSITORY },
    Form { command: "git commit", options: "-m= --message= -a --all -q --quiet --amend --no-edit --allow-empty", rest: Paths, does: CHANGES_REPOSITORY },
    Form { command: "git rm", options: "-r -f -q --cached", rest: Paths, does: CHANGES_REPOSITORY },
    Form { command: "git mv", options: "-f -v", rest: Paths, does: CHANGES_REPOSITORY },
    Form { command: "git restore", options: "--staged -S --worktree -W -s= --source=", rest: Paths, does: CHANGES_REPOSITORY },
    Form { command: "git switch", options: "-c= --create= --detach", rest: Paths, does: CHANGES_REPOSITORY },
    // Cargo without `--config`, `--manifest-path`, `--target-dir`, `-C`, `-Z` and `+toolchain`.
    Form { command: "cargo test", options: CARGO, rest: PathsAndOwnArguments, does: BUILDS },
    Form { command: "cargo run", options: CARGO, rest: PathsAndOwnArguments, does: BUILDS },
    Form { command: "cargo bench", options: CARGO, rest: PathsAndOwnArguments, does: BUILDS },
    Form { command: "cargo build", options: CARGO, rest: Nothing, does: BUILDS },
    Form { command: "cargo check", options: CARGO, rest: Nothing, does: BUILDS },
    Form { command: "cargo doc", options: "--workspace --no-deps --all-features --locked --offline --quiet -q -p= --package=", rest: Nothing, does: BUILDS },
    // The words after `--` reach the compiler, whose options can choose a linker.
    Form { command: "cargo clippy", options: CARGO, rest: Lints, does: BUILDS },
    // An alias of the tree may replace `fmt`; every cargo command starts the compiler that `.cargo/config.toml` names,
    // and rustup the tool chain that `rust-toolchain.toml` names.
    Form { command: "cargo fmt", options: "--all --check -q -v -p= --package=", rest: Nothing, does: LOADS },
    Form { command: "cargo tree", options: "--workspace -i= -p= --package= -e= --depth= --locked --offline", rest: Nothing, does: LOADS },
    Form { command: "cargo metadata", options: "--format-version= --no-deps --locked --offline", rest: Nothing, does: LOADS },
    // Without `--config-file` and `--tool-config-file`.
    Form { command: "cargo nextest run", options: "--workspace --all-features --locked --offline --lib --tests --no-fail-fast --no-capture --release -E= -p= --package= --features= --test= --profile= --retries= -j= --color=", rest: PathsAndOwnArguments, does: BUILDS },
    // Pytest without `-p`, `-c`, `-o`, `--rootdir`, `--confcutdir`, `--pyargs`, `--basetemp` and options that write
    // reports.
    Form { command: "pytest", options: PYTEST, rest: Paths, does: BUILDS },
    Form { command: "python -m pytest", options: PYTEST, rest: Paths, does: BUILDS },
    Form { command: "python3 -m pytest", options: PYTEST, rest: Paths, does: BUILDS },
    Form { command: "python -m unittest", options: "-v -q -f -b -k=", rest: Paths, does: BUILDS },
    Form { command: "python3 -m unittest", options: "-v -q -f -b -k=", rest: Paths, does: BUILDS },
    // Python looks for a module in the directory that it starts in, and mypy loads plugins.
    Form { command: "python -m compileall", options: "-q -f", rest: Paths, does: LOADS },
    Form { command: "ruff check", options: "--fix --diff -q --select= --ignore= --output-format= --no-cache --statistics", rest: Paths, does: CHECKS },
    Form { command: "ruff format", options: "--check --diff -q --no-cache", rest: Paths, does: CHECKS },
    Form { command: "black", options: "--check --diff -q -l= --line-length=", rest: Paths, does: CHECKS },
    Form { command: "mypy", options: "--strict --ignore-missing-imports --no-incremental --pretty --show-error-codes", rest: Paths, does: LOADS },
    // Go without `-exec`, `-toolexec`, `-vettool`, `-o`, `-C`, `-overlay`, `-modfile`, flags of compilers and profiles.
    Form { command: "go test", options: GO, rest: Paths, does: BUILDS },
    Form { command: "go build", options: "-v -race -tags= -x -n -a", rest: Paths, does: BUILDS },
    // Go compiles code that uses C, and asks git about the tree under the tree's own configuration.
    Form { command: "go vet", options: "-v -tags= -json", rest: Paths, does: LOADS },
    Form { command: "go list", options: "-m -json -f= -deps -test", rest: Paths, does: LOADS },
    Form { command: "go fmt", options: "-n -x", rest: Paths, does: CHECKS },
    Form { command: "gofmt", options: "-l -d -w -s", rest: Paths, does: CHECKS },
    // Scripts and targets do different things, so a rule covers only the allowed ones.
    Form { command: "npm test", options: "-s --silent --workspaces --if-present", rest: Same, does: BUILDS },
    Form { command: "npm run", options: "-s --silent --workspaces --if-present", rest: Same, does: BUILDS },
    Form { command: "pnpm test", options: "-s --silent", rest: Same, does: BUILDS },
    Form { command: "pnpm run", options: "-s --silent", rest: Same, does: BUILDS },
    Form { command: "yarn test", options: "-s --silent", rest: Same, does: BUILDS },
    Form { command: "yarn run", options: "-s --silent", rest: Same, does: BUILDS },
    Form { command: "make", options: "-j= -k -s -B -n --silent --keep-going --always-make --dry-run", rest: Same, does: BUILDS },
    // Without `--test-reporter`, `--import` and `--require`, which load code by a path.
    Form { command: "node --test", options: "--test-name-pattern= --test-only", rest: Paths, does: BUILDS },
    // Without `-p`, formatters and plugins, which load code by a path.
    Form { command: "tsc", options: "--noEmit --pretty --strict --skipLibCheck", rest: Nothing, does: CHECKS },
    Form { command: "eslint", options: "--fix --quiet --ext= --max-warnings= --cache", rest: Paths, does: BUILDS },
    Form { command: "prettier", options: "--check -c --write -w -l --list-different", rest: Paths, does: BUILDS },
];

/// Programs whose long options have one dash, so that letters are never combined.
const LONG_WITH_ONE_DASH: &[&str] = &["find", "go", "gofmt", "node", "tsc"];

/// The form of a command whose words all fit it.
pub(crate) fn form_of(words: &[String]) -> Option<&'static Form> {
    let form = named(words)?;
    form.takes(form.behind(words)).then_some(form)
}

/// The form of that name.
pub(crate) fn form(command: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.command == command)
}

/// True when the table has a form of this program.
pub(crate) fn knows(program: &str) -> bool {
    FORMS.iter().any(|form| form.words().next() == Some(program))
}

/// True when the table has an option of a command, or a word after `--`.
pub(crate) fn knows_option(words: &[String], at: usize) -> bool {
    let Some(form) = named(words) else { return false };
    let behind = words.iter().position(|word| word == "--").filter(|dashes| *dashes < at);
    match (behind, form.rest) {
        (Some(_), PathsAndOwnArguments) => true,
        (Some(dashes), Lints) => are_lints(&words[dashes + 1..]),
        (Some(_), _) => false,
        (None, _) => words[at] == "--" || form.option(&words[at]).is_some(),
    }
}

/// The form with the longest command at the start of these words.
fn named(words: &[String]) -> Option<&'static Form> {
    let begins = |form: &&Form| form.words().count() <= words.len() && form.words().zip(words).all(|(a, b)| a == b);
    FORMS.iter().filter(begins).max_by_key(|form| form.words().count())
}

impl Form {
    /// The command in the form that a person reads and a rule stores.
    pub(crate) fn command(&self) -> &'static str {
        self.command
    }

    /// True when a rule covers only the same words, beside options.
    pub(crate) fn is_for_same_words(&self) -> bool {
        self.rest == Same
    }

    /// The words of a command that are neither options nor values of them.
    pub(crate) fn operands<'a>(&self, words: &'a [String]) -> Vec<&'a str> {
        self.read(self.behind(words)).map(|(operands, own)| [operands, own].concat()).unwrap_or_default()
    }

    fn words(&self) -> std::str::Split<'static, char> {
        self.command.split(' ')
    }

    fn behind<'a>(&self, words: &'a [String]) -> &'a [String] {
        &words[self.words().count()..]
    }

    fn takes(&self, words: &[String]) -> bool {
        let Some((operands, own)) = self.read(words) else { return false };
        let are_paths = |words: &[&str]| words.iter().all(|word| leads_nowhere(word));
        match self.rest {
            Nothing => operands.is_empty() && own.is_empty(),
            Words | Same => true,
            Paths => are_paths(&operands) && are_paths(&own),
            PathsAndOwnArguments => are_paths(&operands),
            Lints => operands.is_empty() && are_lints(&own),
            PatternAndPaths => own.is_empty() && are_paths(operands.get(1..).unwrap_or_default()),
            LinesAndPaths => {
                own.is_empty()
                    && operands.split_first().is_some_and(|(first, paths)| are_lines(first) && are_paths(paths))
            }
        }
    }

    /// The words that are no options, and those after `--`; none if an option is not of this form.
    fn read<'a>(&self, words: &'a [String]) -> Option<(Vec<&'a str>, Vec<&'a str>)> {
        let (mut operands, mut words) = (Vec::new(), words.iter());
        while let Some(word) = words.next() {
            if word == "--" {
                return Some((operands, words.map(String::as_str).collect()));
            }
            if !word.starts_with('-') || word == "-" {
                operands.push(word.as_str());
            } else if self.option(word)? == Value::Next {
                words.next()?;
            }
        }
        Some((operands, Vec::new()))
    }

    /// The place of an option's value; none for an option that is not of this form.
    fn option(&self, word: &str) -> Option<Value> {
        let listed = |name: &str| self.options.split_whitespace().any(|option| option == name);
        let takes_value = |name: &str| listed(&format!("{name}="));
        if let Some((name, _)) = word.split_once('=') {
            return takes_value(name).then_some(Value::Within);
        }
        if listed(word) {
            return Some(Value::None);
        }
        if takes_value(word) {
            return Some(Value::Next);
        }
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-') && letters.is_ascii())?;
        if listed("-N") && letters.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Value::None);
        }
        if LONG_WITH_ONE_DASH.contains(&self.words().next()?) {
            return None;
        }
        // Combined letters, of which the last may use the rest of the word.
        for (at, letter) in letters.char_indices() {
            if takes_value(&format!("-{letter}")) {
                return Some(if at + 1 < letters.len() { Value::Within } else { Value::Next });
            }
            if !listed(&format!("-{letter}")) {
                return None;
            }
        }
        Some(Value::None)
    }
}

/// The place of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    None,
    Within,
    Next,
}

/// True when no program reads a word as an option, as a file of options (`@file`), or as a path outside of the tree.
fn leads_nowhere(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(['-', '/', '~', '@'])
        && !word.contains("://")
        && !word.split(['/', ':']).any(|part| part == "..")
}

fn are_lines(word: &str) -> bool {
    let Some(range) = word.strip_suffix('p') else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    range.split_once(',').map_or(is_number(range), |(from, to)| is_number(from) && is_number(to))
}

/// Pairs of a level and a lint.
fn are_lints<T: AsRef<str>>(words: &[T]) -> bool {
    words.chunks(2).all(|pair| match pair {
        [level, lint] => {
            let is_lint = |c: char| c.is_ascii_lowercase() || matches!(c, '_' | ':' | '-');
            matches!(level.as_ref(), "-D" | "-W" | "-A" | "-F")
                && !lint.as_ref().starts_with('-')
                && lint.as_ref().chars().all(is_lint)
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn each_form_stands_once_and_takes_its_own_command() {
        for (at, one) in FORMS.iter().enumerate() {
            assert_eq!(FORMS.iter().position(|form| form.command == one.command), Some(at), "{}", one.command);
            let is_option = |option: &str| option.starts_with('-') && option.trim_end_matches('=').len() > 1;
            assert!(one.options.split_whitespace().all(is_option), "{}", one.command);
        }
    }

    #[test]
    fn a_person_is_told_of_each_form_that_may_run_code_of_the_tree() {
        const RUN: &[&str] = &[
            "cargo", "python", "python3", "mypy", "pytest", "npm", "pnpm", "yarn", "make", "node", "eslint", "prettier",
        ];
        for form in FORMS {
            let program = form.words().next().unwrap_or_default();
            let runs = RUN.contains(&program) || (program == "go" && form.command != "go fmt");
            assert_eq!(matches!(form.does, BUILDS | LOADS), runs, "{}: {}", form.command, form.does);
        }
    }

    #[test]
    fn usual_commands_are_covered_by_a_form() {
        for (line, expected) in [
            ("git log --oneline -5", "git log"),
            ("git log -n5 --stat main..HEAD", "git log"),
            ("git commit -am fine", "git commit"),
            ("git diff HEAD~1 -- src/a.rs", "git diff"),
            ("cargo test -p longhaul -- --nocapture name", "cargo test"),
            ("cargo clippy --workspace -- -D warnings", "cargo clippy"),
            ("python -m pytest -qx -k name tests/test_a.py::test_b", "python -m pytest"),
            ("go test -run=TestX ./...", "go test"),
            ("sed -n 10,20p src/a.rs", "sed -n"),
            ("find . -name x -type f", "find"),
            ("grep -rn /usr src", "grep"),
            ("ls -la src", "ls"),
            ("npm run build", "npm run"),
        ] {
            assert_eq!(form_of(&words(line)).map(Form::command), Some(expected), "{line}");
        }
    }
}
