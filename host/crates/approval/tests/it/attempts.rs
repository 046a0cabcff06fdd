//! Attempts to get a call past its approver: each by its name, each asked about or refused.
//!
//! A person said `a` to `git status` of a tool that runs commands, or `y` to one call. Nothing below may pass by it.

use longhaul_approval::{
    Approval, ApprovalAnswer, ApprovalKind, ApprovalStatus, ApprovalSubject, RunRule, banner, runs_commands,
};
use longhaul_core::InvocationId;
use longhaul_core::approval::CallDecision;
use longhaul_core::journal::EffectClass;

const DIGEST: &str = "0f1e";

fn subject(tool: &str, arguments: &str) -> ApprovalSubject {
    ApprovalSubject {
        invocation: InvocationId::from_text("r-1/f-one/1/generate"),
        entry: 3,
        tool: tool.to_owned(),
        function: "run".to_owned(),
        component: DIGEST.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn approval(subject: ApprovalSubject) -> Approval {
    Approval {
        id: subject.id(),
        runs_commands: runs_commands(&subject.tool, &subject.function, "x"),
        heard: Vec::new(),
        repeats: false,
        subject,
        asks: ApprovalKind::Call,
        agent: "agents.code".to_owned(),
        plugin: "caller".to_owned(),
        effect: EffectClass::Acts,
        at_ms: 1,
        standing: ApprovalStatus::Open,
    }
}

/// The rule that comes of `a` to this command line.
fn rule(arguments: &str) -> RunRule {
    let (_, rule) = approval(subject("shell", arguments)).answered("a", 2).expect("a rule");
    rule.expect("`a` makes one")
}

fn passes(rule: &RunRule, arguments: &str) -> bool {
    rule.covers(&subject("shell", arguments), true)
}

/// A command line as the arguments of a call.
fn cmd(line: &str) -> String {
    serde_json::json!({ "cmd": line }).to_string()
}

/// Command lines by the name of the trick.
const LINES: &[(&str, &str)] = &[
    ("another program", "rm -rf /"),
    ("chaining by semicolon", "git status; rm -rf /"),
    ("chaining by and", "git status && rm -rf /"),
    ("chaining by or", "git status || rm -rf /"),
    ("to the background", "git status & rm -rf /"),
    ("a pipe", "git log | sh"),
    ("a pipe of both outputs", "git log |& sh"),
    ("a newline", "git status\nrm -rf /"),
    ("a carriage return", "git status\rrm -rf /"),
    ("a vertical tab", "git\u{b}status"),
    ("an escaped newline", "git \\\nstatus"),
    ("substitution", "git log $(rm x)"),
    ("substitution in double quotes", "git log \"$(rm x)\""),
    ("substitution by back ticks", "git log `rm x`"),
    ("process substitution", "git diff <(rm x)"),
    ("a variable", "git log $PAGER"),
    ("a variable in braces", "git log ${IFS}x"),
    ("arithmetic", "git log $((1))"),
    ("writing to a file", "git diff > /etc/passwd"),
    ("appending to a file", "git diff >> ~/.bashrc"),
    ("reading from a file", "git apply < evil.patch"),
    ("a here document", "git apply <<E\nx\nE"),
    ("a here string", "git apply <<< x"),
    ("a numbered descriptor", "git status 2>/etc/passwd"),
    ("a subshell", "(git status)"),
    ("a group", "{ git status; }"),
    ("a negation", "! git status"),
    ("a loop", "for i in 1; do git status; done"),
    ("a function", "git() { rm -rf /; }"),
    ("an assignment before the program", "GIT_SSH_COMMAND=evil git push"),
    ("an assignment alone", "git=rm"),
    ("a quoted program", "'git' status"),
    ("a program in two quotes", "g'i't status"),
    ("an escaped program", "g\\it status"),
    ("a program by its path", "./git status"),
    ("a program by another path", "/tmp/git status"),
    ("a pattern as the program", "/bin/g?t status"),
    ("a pattern as an argument", "git add *"),
    ("braces", "git {status,push}"),
    ("a comment that hides a newline's end", "git status # x"),
    ("a history expansion", "git status !!"),
    ("a quote that is not closed", "git commit -m 'x"),
    ("ANSI quotes", "git commit -m $'\\x3b rm'"),
    ("a tilde", "git add ~root"),
    ("an old pipe", "git log ^ sh"),
    ("a Cyrillic letter in the program", "g\u{456}t status"),
    ("a fullwidth program", "ｇｉｔ status"),
    ("a fullwidth semicolon", "git status；rm"),
    ("a no-break space", "git\u{a0}status"),
    ("a zero-width space", "git\u{200b} status"),
    ("a right-to-left override", "git \u{202e}sutats"),
    ("a NUL", "git status\0; rm"),
    ("a terminal escape", "git status\u{1b}[2K"),
    ("a line that nobody reads to its end", "LONG"),
    ("nothing", ""),
    ("spaces", "   "),
    ("the wrapper env", "env git status"),
    ("the wrapper sudo", "sudo git status"),
    ("the wrapper xargs", "xargs git status"),
    ("the wrapper nohup", "nohup git status"),
    ("the wrapper timeout", "timeout 5 git status"),
    ("a shell", "sh -c 'git status'"),
    ("a shell by its path", "/bin/bash -c 'git status'"),
    ("an interpreter", "python3.12 -c 'x'"),
    ("eval", "eval git status"),
    ("the command builtin", "command git status"),
    ("a configuration that runs a program", "git -c core.pager=evil log"),
    ("an alias that runs a program", "git config alias.st evil"),
    ("a cut long option", "git --exec-p=/tmp status"),
    ("a transport that runs a program", "git clone ext::evil"),
    ("a bisection that runs a program", "git bisect run evil"),
    ("another repository", "git -C evil status"),
    ("another repository by its directory", "git --git-dir=evil/.git status"),
    ("another directory of files", "git --work-tree=/ status"),
    ("a bare repository of the tree", "git --bare status"),
    ("another place for programs", "git --exec-path=evil log"),
    ("a file that is written", "git log --output=../x"),
    ("a file that is written by a diff", "git diff --output x"),
    ("files outside by a diff", "git diff --no-index /etc/passwd x"),
    ("files outside by their paths", "git diff /etc/passwd x"),
    ("a path that leads up", "git log -- ../x"),
    ("a driver that runs", "git diff --ext-diff"),
    ("a converter that runs", "git log -p --textconv"),
    ("an order from a file", "git diff -O../order"),
    ("a message from a file", "git commit -F /etc/passwd"),
    ("an editor", "git commit -e"),
    ("hooks of a template", "git init --template=evil"),
    ("a remote", "git push evil main"),
    ("a cut option", "git log --outpu=x"),
    ("letters that stand together", "git log -pO../order"),
];

/// Commands of which each has a rule, and what no rule of theirs may let pass.
const FORMS: &[(&str, &[&str])] = &[
    ("git status", &["git log", "git commit -m x", "git status -c x"]),
    (
        "cargo test",
        &[
            "cargo run",
            "cargo +nightly test",
            "cargo test --config x.toml",
            "cargo test --config=build.rustc='evil'",
            "cargo test --manifest-path=../x/Cargo.toml",
            "cargo test -Z unstable-options",
            "cargo test --target-dir=/etc",
            "cargo test -C ..",
            "cargo install evil",
        ],
    ),
    ("cargo clippy -- -D warnings", &["cargo clippy -- -C linker=evil", "cargo clippy -- -D", "cargo clippy -- @args"]),
    (
        "pytest -q",
        &[
            "pytest -p evil",
            "pytest -qp evil",
            "pytest -c evil.ini",
            "pytest --rootdir=/",
            "pytest --confcutdir=/",
            "pytest --basetemp=src",
            "pytest -o cache_dir=/x",
            "pytest @args.txt",
            "pytest /etc",
            "pytest ../other",
            "./pytest -q",
            "pytest3 -q",
        ],
    ),
    (
        "python -m pytest",
        &[
            "python -m pip install x",
            "python -c x",
            "python evil.py",
            "python -m pytest -p evil",
            "python -I -m pytest",
        ],
    ),
    (
        "go test ./...",
        &[
            "go test -exec=evil ./...",
            "go test -toolexec evil",
            "go test -vettool=evil",
            "go test -o /x",
            "go run ./x",
            "go test -C ..",
        ],
    ),
    (
        "make test",
        &["make deploy", "make", "make -f evil test", "make SHELL=evil test", "make -C .. test", "make test deploy"],
    ),
    (
        "npm run build",
        &[
            "npm run deploy",
            "npm run build --prefix ..",
            "npm run build --script-shell=evil",
            "npm exec evil",
            "npm run build -- x",
        ],
    ),
    ("ls -la", &["ls /", "ls ~", "ls ../x", "ls -la /etc"]),
    ("cat a.txt", &["cat /etc/passwd", "cat ../x", "cat a.txt /etc/passwd"]),
    ("grep -rn x src", &["grep -f /etc/passwd x", "grep -rn x /etc", "grep -rn x src ../y"]),
    ("rg x", &["rg --pre evil x", "rg -z x", "rg --hostname-bin=evil x"]),
    (
        "find . -name x",
        &[
            "find . -exec evil",
            "find . -delete",
            "find . -fprint x",
            "find . -fls x",
            "find / -name x",
            "find . -okdir evil",
        ],
    ),
    (
        "sed -n 1,20p a.txt",
        &["sed -n 1e a.txt", "sed -n 'w x' a.txt", "sed -i 1p a.txt", "sed -n 1,20p /etc/passwd", "sed 1p a.txt"],
    ),
    ("sort -n a", &["sort -o x a", "sort -no x a", "sort --compress-program=evil a", "sort --files0-from=x"]),
    // Commands that the table does not know match in exactly these words.
    ("mytool --fast a", &["mytool --fast b", "mytool --fast", "mytool a", "mytool --fast a b", "other --fast a"]),
    ("git -C sub status", &["git -C evil status", "git -C sub log", "git status"]),
];

#[test]
fn a_rule_covers_the_form_that_was_allowed_and_nothing_beside_it() {
    for (allowed, tries) in FORMS {
        let rule = rule(&cmd(allowed));
        assert!(passes(&rule, &cmd(allowed)), "{allowed}");
        let past: Vec<_> = tries.iter().filter(|line| passes(&rule, &cmd(line))).collect();
        assert!(past.is_empty(), "`{allowed}` let pass: {past:?}");
    }
    for (allowed, same) in [
        ("git log", "git log --oneline -5 main..HEAD -- src"),
        ("git commit -m x", "git commit -m 'a; b \"c\" é'"),
        ("cargo test", "cargo test -p one --lib -- --nocapture name"),
        ("pytest -q", "pytest -x -k name tests/test_a.py::test_b"),
        ("sed -n 1,20p a.txt", "sed -n 40,60p src/b.txt"),
        ("make test", "make -j4 test"),
    ] {
        assert!(passes(&rule(&cmd(allowed)), &cmd(same)), "{allowed}: {same}");
    }
}

/// A rule of an earlier version says a program alone.
#[test]
fn a_rule_from_before_the_table_covers_nothing_and_says_so() {
    let rule = RunRule { commands: None, ..rule(&cmd("git status")) };
    assert!(!passes(&rule, &cmd("git status")));
    assert!(rule.text().contains("nothing") && rule.text().contains("answer anew"), "{}", rule.text());
}

#[test]
fn no_command_line_passes_by_a_rule_for_git() {
    let lines = ["git status", "git log", "git diff", "git commit -m x", "git add -A", "git init"];
    let rules = lines.map(|line| rule(&cmd(line)));
    let long = format!("git status {}", "x".repeat(5_000));
    let past: Vec<_> = LINES
        .iter()
        .map(|(name, line)| (name, if *line == "LONG" { &long } else { *line }))
        .filter(|(_, line)| rules.iter().any(|rule| passes(rule, &cmd(line))))
        .map(|(name, _)| name)
        .collect();
    assert!(past.is_empty(), "passed: {past:?}");
}

/// Arguments by the name of the trick.
const ARGUMENTS: &[(&str, &str)] = &[
    ("a list of words of another program", r#"{"args":["rm","-rf","/"]}"#),
    ("a list whose program is a wrapper", r#"{"argv":["env","git"]}"#),
    ("a list whose program has a space", r#"{"argv":["git status"]}"#),
    ("a list that is empty", r#"{"argv":[]}"#),
    ("a list of lists", r#"{"argv":[["git"],["status"]]}"#),
    ("a list with a newline in a word", r#"{"argv":["git","status\nrm"]}"#),
    ("a number as a word", r#"{"argv":["git",1]}"#),
    ("two commands", r#"{"cmd":"git status","command":"rm -rf /"}"#),
    ("a command and a script", r#"{"cmd":"git status","script":"rm -rf /"}"#),
    ("a name that stands twice", r#"{"cmd":"git status","cmd":"rm -rf /"}"#),
    ("a name that stands twice by an escape", r#"{"cmd":"git status","c\u006dd":"rm -rf /"}"#),
    ("an environment beside the command", r#"{"cmd":"git status","env":{"GIT_PAGER":"evil"}}"#),
    ("another directory", r#"{"cmd":"git status","cwd":"/etc"}"#),
    ("a shell asked for", r#"{"cmd":"git status","shell":true}"#),
    ("another case of the name", r#"{"Cmd":"git status"}"#),
    ("no object", r#"["git","status"]"#),
    ("two values", r#"{"cmd":"git status"}{"cmd":"rm"}"#),
    ("null", r#"{"cmd":null}"#),
    ("a program with its words beside it", r#"{"program":"rm","args":["-rf","/"]}"#),
    ("nothing at all", ""),
];

#[test]
fn no_arguments_pass_by_a_rule_for_git() {
    let rule = rule(&cmd("git status"));
    let past: Vec<_> = ARGUMENTS.iter().filter(|(_, text)| passes(&rule, text)).map(|(name, _)| name).collect();
    assert!(past.is_empty(), "passed: {past:?}");
    // The same command as words is no other command.
    assert!(passes(&rule, r#"{"argv":["git","status"]}"#));
}

/// Tool, function and plugin of what runs commands.
const COMMAND_TOOLS: &[(&str, &str, &str)] = &[
    ("shell", "call", "x"),
    ("x", "runCommand", "x"),
    ("x", "executeCommand", "x"),
    ("x", "execShell", "x"),
    ("x", "runInTerminal", "x"),
    ("x", "RUNCommand", "x"),
    ("x", "runcommand", "x"),
    ("x", "run_command2", "x"),
    ("x", "exec2", "x"),
    ("PowerShell", "call", "x"),
    ("powershell", "call", "x"),
    ("pwsh", "call", "x"),
    ("x", "eval", "x"),
    ("x", "evaluateScript", "x"),
    ("x", "run-script", "x"),
    ("x", "subprocess", "x"),
    ("console", "write", "x"),
    ("awsCLI", "call", "x"),
    ("x", "terminal", "x"),
    ("x", "command", "x"),
    ("x", "call", "builtin:shell"),
];

#[test]
fn a_tool_that_runs_commands_is_told_by_its_name_however_the_name_is_written() {
    let unseen: Vec<_> =
        COMMAND_TOOLS.iter().filter(|(tool, function, plugin)| !runs_commands(tool, function, plugin)).collect();
    assert!(unseen.is_empty(), "unseen: {unseen:?}");
    for (tool, function) in [("files", "read"), ("memory", "recall"), ("http-fetch", "getPage"), ("clips", "brush")] {
        assert!(!runs_commands(tool, function, tool), "{tool}.{function}");
    }
}

#[test]
fn a_command_among_the_arguments_is_held_to_its_program_whatever_the_tool_is_called() {
    let call = |arguments: &str| ApprovalSubject { function: "invoke".into(), ..subject("helper", arguments) };
    let asked = |arguments: &str| Approval { runs_commands: false, ..approval(call(arguments)) };
    let rule = |arguments: &str| asked(arguments).answered("a", 2).map(|(_, rule)| rule.expect("`a` makes one"));
    for name in ["cmd", "command", "command_line"] {
        let arguments = |line: &str| serde_json::json!({ name: line }).to_string();
        let of_git = rule(&arguments("git status")).expect(name);
        assert!(of_git.covers(&call(&arguments("git status -s")), false), "{name}");
        assert!(!of_git.covers(&call(&arguments("rm -rf /")), false), "{name}");
        assert!(!of_git.covers(&call("{}"), false), "{name}");
        assert!(rule(&arguments("git status; rm -rf /")).is_err(), "{name}");
        // A rule from a call without a command does not cover one with a command.
        assert!(!rule(r#"{"path":"/"}"#).expect("a rule").covers(&call(&arguments("rm -rf /")), false), "{name}");
    }
    for name in ["Cmd", "commandLine", "COMMAND-LINE"] {
        let arguments = serde_json::json!({ name: "git status" }).to_string();
        assert!(rule(&arguments).is_err(), "{name}");
        assert!(!rule(r#"{"path":"/"}"#).expect("a rule").covers(&call(&arguments), false), "{name}");
    }
}

#[test]
fn a_program_that_starts_others_is_no_rule_and_neither_is_what_cannot_be_read() {
    for (name, arguments) in [
        ("find -exec", cmd("find . -exec rm {} +")),
        ("find -delete", cmd("find . -name x -delete")),
        ("tar by a letter", cmd("tar xIf evil a.tar")),
        ("tar by a cut option", cmd("tar --checkpoint-a=exec=evil -xf a.tar")),
        ("rsync -e", cmd("rsync -e evil a b")),
        ("env", cmd("env A=1 git x")),
        ("awk", cmd("awk 'x'")),
        ("a shell under another name", cmd("bash-static -c x")),
        ("a shell that is told apart by a version", cmd("python3-dbg x.py")),
        ("a client with a shell", cmd("sqlite3 a.db '.shell id'")),
        ("a script", cmd("python x.py")),
        ("make-believe git", cmd("git status; rm x")),
        ("no command", "{}".to_owned()),
        ("code", r#"{"code":"import os"}"#.to_owned()),
    ] {
        let before = approval(subject("shell", &arguments));
        let error = before.answered("a", 2).expect_err(name).to_string();
        assert!(error.contains("cannot be allowed by rule") && error.contains("`y`"), "{name}: {error}");
        assert!(before.answered("y", 2).is_ok(), "{name}");
    }
}

/// A change that makes another call of one.
type Change = fn(&mut ApprovalSubject);

#[test]
fn an_approval_is_for_one_call_and_once() {
    let asked = approval(subject("shell", &cmd("git status")));
    let (answered, _) = asked.answered("y", 2).expect("an answer");
    let tricks: [(&str, Change); 7] = [
        ("changed arguments", |s| s.arguments = cmd("git push")),
        ("one more space", |s| s.arguments.push(' ')),
        ("a changed component", |s| s.component = "0f1f".to_owned()),
        ("another run", |s| s.invocation = InvocationId::from_text("r-2/f-one/1/generate")),
        ("another entry", |s| s.entry = 4),
        ("another tool", |s| s.tool = "shell2".to_owned()),
        ("another function", |s| s.function = "run_as_root".to_owned()),
    ];
    for (name, change) in tricks {
        let mut other = asked.subject.clone();
        change(&mut other);
        assert_ne!(other.id(), asked.id, "{name}");
        assert!(answered.used(&other, 3).is_err(), "{name}");
    }
    let (decision, used) = answered.used(&asked.subject, 3).expect("it is for this").expect("an answer");
    assert!(matches!(decision, CallDecision::Allowed(_)));
    assert!(used.used(&asked.subject, 4).is_err(), "used twice");
    assert!(used.answered("y", 5).is_err() && answered.answered("n", 5).is_err(), "answered twice");
    let withdrawn = Approval { standing: ApprovalStatus::Withdrawn, ..asked.clone() };
    assert!(withdrawn.used(&asked.subject, 3).is_err() && withdrawn.answered("y", 3).is_err());
    assert_eq!(asked.used(&asked.subject, 3), Ok(None), "nobody has answered");
}

#[test]
fn parts_of_a_subject_cannot_be_moved_into_each_other() {
    let one = ApprovalSubject { tool: "a".into(), function: "bc".into(), ..subject("a", "{}") };
    let two = ApprovalSubject { tool: "ab".into(), function: "c".into(), ..one.clone() };
    assert_ne!(one.id(), two.id());
}

#[test]
fn a_rule_is_bound_to_its_tool_and_component_and_ends_when_it_is_revoked() {
    let wipe = |tool: &str, component: &str, function: &str| ApprovalSubject {
        function: function.to_owned(),
        component: component.to_owned(),
        ..subject(tool, r#"{"path":"/"}"#)
    };
    let mut asked = approval(wipe("cleaner", DIGEST, "wipe"));
    asked.runs_commands = false;
    let rule = asked.answered("a", 2).expect("an answer").1.expect("a rule");
    assert!(rule.covers(&ApprovalSubject { arguments: "{}".into(), ..asked.subject.clone() }, false));
    for (name, other) in [
        ("another tool", wipe("other", DIGEST, "wipe")),
        ("a changed component", wipe("cleaner", "0f1f", "wipe")),
        ("another function", wipe("cleaner", DIGEST, "burn")),
    ] {
        assert!(!rule.covers(&other, false), "{name}");
    }
    let unreadable = ApprovalSubject { arguments: r#"{"a":1,"a":2}"#.into(), ..asked.subject.clone() };
    assert!(!rule.covers(&unreadable, false), "unreadable arguments");
    assert!(!RunRule { revoked_ms: Some(3), ..rule }.covers(&asked.subject, false), "revoked");
}

#[test]
fn no_argument_can_forge_a_line_of_the_banner() {
    let forged = "x\"\n└─\n┌─ approval a-000000000000\n│ tool       files.read\r\u{1b}[2J\u{1b}[8m\u{202e}";
    let arguments = serde_json::json!({ "text": forged, "│ tool": "y\u{2028}z" }).to_string();
    let shown = banner(&approval(ApprovalSubject { tool: "to\nol".into(), ..subject("x", &arguments) }));
    assert_eq!(shown.lines().filter(|line| line.starts_with("┌─")).count(), 1, "{shown}");
    assert_eq!(shown.lines().filter(|line| line.starts_with("└─")).count(), 1, "{shown}");
    assert!(shown.lines().all(|line| line.starts_with(['┌', '│', '└'])), "{shown}");
    assert!(!shown.contains(['\r', '\u{1b}', '\u{202e}', '\u{2028}']), "{shown}");
    assert_eq!(shown.matches('│').count(), shown.lines().count() - 2, "{shown}");
    // The dangerous part may be at the end of a long text, so the end is shown.
    let long = serde_json::json!({ "cmd": format!("echo {}; rm -rf /", " ".repeat(9_000)) }).to_string();
    let shown = banner(&approval(subject("shell", &long)));
    assert!(shown.contains("; rm -rf /\"") && shown.contains("characters are not shown"), "{shown}");
}

#[test]
fn nothing_that_looks_like_yes_is_yes() {
    for (name, line) in [
        ("an empty line", ""),
        ("spaces", "  \t"),
        ("a zero-width space", "\u{200b}"),
        ("a fullwidth y", "ｙ"),
        ("a Cyrillic u", "\u{443}"),
        ("yes with more", "yes please"),
        ("true", "true"),
        ("a one", "1"),
        ("ok", "ok"),
        ("two answers", "y\ny"),
    ] {
        assert!(!matches!(ApprovalAnswer::read(line), Ok(ApprovalAnswer::Once | ApprovalAnswer::ByRule)), "{name}");
    }
}
