//! Attempts to escape from the tools, each refused by its name.
//!
//! A row is an agent's request and the words of the answer. For every row, files outside of the tree are neither read
//! nor written, no outside host is reached, and no started process is left.

use crate::lab::{Lab, SECRET, ended};
use serde_json::{Value, json};

/// An agent's request, and the answer.
struct Attempt {
    name: &'static str,
    /// Settings of the shell beside its programs.
    settings: Value,
    prepare: fn(&Lab),
    tool: &'static str,
    function: &'static str,
    arguments: fn(&Lab) -> Value,
    /// One of these words is in the answer or the error.
    told: &'static [&'static str],
}

impl Attempt {
    fn shell(name: &'static str, arguments: fn(&Lab) -> Value, told: &'static [&'static str]) -> Self {
        Self { name, settings: json!({}), prepare: |_| {}, tool: "shell", function: "run", arguments, told }
    }

    fn search(name: &'static str, arguments: fn(&Lab) -> Value, told: &'static [&'static str]) -> Self {
        Self { tool: "search", function: "text", ..Self::shell(name, arguments, told) }
    }

    fn git(
        name: &'static str,
        function: &'static str,
        arguments: fn(&Lab) -> Value,
        told: &'static [&'static str],
    ) -> Self {
        Self { tool: "git", function, ..Self::shell(name, arguments, told) }
    }

    /// Git as a program of the shell, on repositories that an agent made.
    fn shell_git(
        name: &'static str,
        prepare: fn(&Lab),
        arguments: fn(&Lab) -> Value,
        told: &'static [&'static str],
    ) -> Self {
        Self { settings: json!({ "programs": ["git"] }), ..Self::shell(name, arguments, told) }.after(prepare)
    }

    fn told(self, told: &'static [&'static str]) -> Self {
        Self { told, ..self }
    }

    fn after(self, prepare: fn(&Lab)) -> Self {
        Self { prepare, ..self }
    }

    fn limits(self, limits: Value) -> Self {
        Self { settings: json!({ "limits": limits }), ..self }
    }
}

async fn check(attempts: Vec<Attempt>) {
    for attempt in attempts {
        let lab = Lab::new();
        (attempt.prepare)(&lab);
        let arguments = (attempt.arguments)(&lab);
        let told = lab.call(attempt.tool, attempt.function, &arguments, &attempt.settings).await;
        let name = attempt.name;
        assert!(attempt.told.iter().any(|word| told.contains(word)), "{name}: {told:.2000}");
        assert!(!told.contains(SECRET), "{name} read what is outside: {told:.2000}");
        assert!(!told.contains("EVIL"), "{name} started what it must not: {told:.2000}");
        lab.untouched(name);
        ended(name, &arguments);
    }
}

fn sh(script: &str) -> Value {
    json!({ "argv": ["sh", "-c", script] })
}

#[tokio::test]
async fn a_program_that_is_not_on_the_list_is_not_started() {
    let not_listed = &["is not on the list of programs"];
    check(vec![
        Attempt::shell("another program", |_| json!({ "argv": ["id"] }), not_listed),
        Attempt::shell("the path of a listed one", |_| json!({ "argv": ["/bin/ls"] }), not_listed),
        Attempt::shell("a path through ..", |_| json!({ "argv": ["../../../bin/ls"] }), not_listed),
        Attempt::shell("a program of the tree", |_| json!({ "argv": ["./ls"] }), not_listed).after(Lab::evil_ls),
        Attempt::shell("a link of the tree", |_| json!({ "argv": ["./link"] }), not_listed)
            .after(|lab| lab.link("/bin/sh", "link")),
        Attempt::shell(
            "a listed name that lies in the tree",
            |_| json!({ "argv": ["ls", "-d", "."] }),
            &["\"success\":true"],
        )
        .after(Lab::evil_ls),
        Attempt::shell("a whole line as one word", |_| json!({ "argv": ["ls; id"] }), not_listed),
        Attempt::shell("an assignment before it", |_| json!({ "command": "LD_PRELOAD=./x.so ls" }), not_listed),
        Attempt::shell("a look-alike letter", |_| json!({ "argv": ["l\u{455}"] }), not_listed),
        Attempt::shell("a space at its end", |_| json!({ "argv": ["ls "] }), not_listed),
        Attempt::shell("no program", |_| json!({ "argv": [] }), &["there is no program"]),
        Attempt::shell("an empty word", |_| json!({ "argv": [""] }), not_listed),
        Attempt::shell(
            "a listed path that leads into the tree",
            |_| json!({ "argv": ["/opt-of-the-test"] }),
            not_listed,
        ),
    ])
    .await;
    let lab = Lab::new();
    lab.evil_ls();
    let tool = lab.outside().join("tool");
    std::os::unix::fs::symlink(lab.tree().join("ls"), &tool).unwrap();
    let told = lab.call_with(&[tool.to_str().unwrap()], &json!({ "argv": [tool] })).await;
    assert!(told.contains("lies in the tree, where agents write"), "{told}");
}

#[tokio::test]
async fn what_a_shell_would_act_on_is_no_command_line() {
    let line = |name, arguments: fn(&Lab) -> Value, told| Attempt::shell(name, arguments, told);
    check(vec![
        line("a chain", |_| json!({ "command": "ls; id" }), &["a chain of commands"]),
        line("a chain by newline", |_| json!({ "command": "ls\nid" }), &["a second line"]),
        line("a pipe", |_| json!({ "command": "cat x | sh" }), &["a chain of commands"]),
        line("a substitution", |_| json!({ "command": "ls \"$(id)\"" }), &["a substitution"]),
        line("a redirection", |_| json!({ "command": "ls > ../x" }), &["a redirection"]),
        line("both forms", |_| json!({ "command": "ls", "argv": ["ls"] }), &["not both"]),
        line("a NUL in a word", |_| json!({ "argv": ["ls", "a\0b"] }), &["has a NUL"]),
        line("more words than may be", |_| json!({ "argv": vec!["ls"; 1_001] }), &["words_max"]),
        line(
            "environment as an argument",
            |_| json!({ "argv": ["ls"], "env": { "LD_PRELOAD": "x" } }),
            &["unknown field `env`"],
        ),
        line("a sandbox as an argument", |_| json!({ "argv": ["ls"], "sandbox_min": "none" }), &["unknown field"]),
    ])
    .await;
}

#[tokio::test]
async fn what_is_started_stays_in_the_tree() {
    check(vec![
        Attempt::shell("a place above", |_| json!({ "argv": ["ls"], "cwd": ".." }), &["has `..`"]),
        Attempt::shell("a place elsewhere", |_| json!({ "argv": ["ls"], "cwd": "/etc" }), &["is absolute"]),
        Attempt::shell(
            "a place through a link",
            |_| json!({ "argv": ["cat", "secret.txt"], "cwd": "out" }),
            &["`cwd` leads out of the tree"],
        )
        .after(|lab| lab.link(lab.outside(), "out")),
        Attempt::shell(
            "a file outside",
            |lab| sh(&format!("echo x > {}/escaped", lab.outside().display())),
            &["nonexistent"],
        ),
        Attempt::shell("a file outside through a link", |_| sh("echo x > out/escaped"), &["nonexistent"])
            .after(|lab| lab.link(lab.outside(), "out")),
        Attempt::shell(
            "removing what is outside",
            |lab| sh(&format!("rm -r {}", lab.outside().display())),
            &["No such file"],
        ),
        Attempt::shell(
            "the data directory",
            |lab| json!({ "argv": ["cat", lab.hidden().join("key")] }),
            &["No such file"],
        ),
        Attempt::shell("the environment of the host", |_| json!({ "argv": ["env"] }), &["PATH="]),
        Attempt::shell(
            "the environment of the host through /proc",
            |_| sh("cat /proc/[0-9]*/environ; echo read"),
            &["read"],
        ),
        Attempt::shell(
            "a connection to the machine",
            |lab| {
                let port = lab.port();
                json!({ "argv": ["bash", "-c", format!("echo x > /dev/tcp/127.0.0.1/{port}")] })
            },
            &["Connection refused"],
        ),
        Attempt::shell(
            "a signal to the host",
            |_| sh(&format!("kill -9 {}", std::process::id())),
            &["No such process"],
        ),
        Attempt::shell(
            "undoing the sandbox",
            |_| sh("umount /tmp || umount -l /tmp/work"),
            &["ermitted", "must be superuser", "umount failed"],
        ),
        Attempt::shell("a file system of its own", |_| sh("mount -t tmpfs none /etc"), &["ermi", "must be superuser"]),
    ])
    .await;
}

#[tokio::test]
async fn what_is_started_ends_and_leaves_nothing() {
    let short = || json!({ "wall_ms_max": 500, "grace_ms": 300, "output_bytes_max": 10_000 });
    check(vec![
        Attempt::shell("an output without an end", |_| sh("yes EV''IL-no | tr -d EVIL"), &["bytes left out"])
            .limits(short()),
        Attempt::shell(
            "more time than the operator gives",
            |_| json!({ "argv": ["sleep", "7770001"], "timeout_ms": 1_000_000_000_000_u64 }),
            &["Timeout: given up after 500 ms"],
        )
        .limits(short()),
        Attempt::shell(
            "a program that will not end",
            |_| sh("trap '' TERM; sleep 7770002; sleep 7770003"),
            &["Timeout: given up"],
        )
        .limits(short()),
        Attempt::shell(
            "a child in a session of its own",
            |_| sh("setsid sleep 7770004 & exit 0"),
            &["\"success\":true"],
        ),
        Attempt::shell(
            "a child that is nobody's",
            |_| sh("(setsid sh -c 'sleep 7770005 & sleep 7770006' &) ; exit 0"),
            &["\"success\":true"],
        ),
        Attempt::shell("a child that holds the output", |_| sh("sleep 7770007 & echo done"), &["done"]),
        Attempt::shell(
            "a bomb of processes",
            |_| sh("b() { b | b & }; b; sleep 7770008"),
            &["processes_max", "fork", "Timeout"],
        )
        .limits(json!({ "processes_max": 40, "wall_ms_max": 3_000, "grace_ms": 100 })),
        Attempt::shell(
            "more memory",
            |_| sh("head -c 400000000 /dev/zero | tail -c 300000000 | wc -c"),
            &["memory exhausted", "annot allocate"],
        )
        .limits(json!({ "memory_bytes_max": 64 << 20 })),
        Attempt::shell("a large file", |_| sh("head -c 100000000 /dev/zero > big"), &["file_bytes_max"])
            .limits(json!({ "file_bytes_max": 1 << 20 })),
        Attempt::shell("time on the processor", |_| sh("while :; do :; done"), &["cpu_seconds_max"])
            .limits(json!({ "cpu_seconds_max": 1 })),
    ])
    .await;
}

#[tokio::test]
async fn a_search_stays_in_the_tree_and_within_its_bounds() {
    let top = |_: &Lab| json!({ "pattern": "TOP" });
    check(vec![
        Attempt::search("a path above", |_| json!({ "pattern": "TOP", "path": "../outside" }), &["has `..`"]),
        Attempt::search("a full path", |lab| json!({ "pattern": "TOP", "path": lab.outside() }), &["is absolute"]),
        Attempt::search(
            "a link to a directory",
            |_| json!({ "pattern": "TOP", "path": "out" }),
            &["\"files_searched\":0"],
        )
        .after(|lab| lab.link(lab.outside(), "out")),
        Attempt::search(
            "below a link to a directory",
            |_| json!({ "pattern": "TOP", "path": "out/sub" }),
            &["cannot list"],
        )
        .after(|lab| lab.link(lab.outside(), "out")),
        Attempt::search("a link to a file", top, &["\"links_and_others\":1"])
            .after(|lab| lab.link(lab.outside().join("secret.txt"), "s")),
        Attempt::search(
            "a repository in the tree",
            |_| json!({ "pattern": "TOP", "path": "sub/.git" }),
            &["leads into a repository"],
        ),
        Attempt::search("a .gitignore without an end", top, &["\"matches\":[]"])
            .after(|lab| lab.link("/dev/zero", ".gitignore")),
        Attempt::search("a .gitignore that is a pipe", top, &["\"matches\":[]"]).after(|lab| lab.pipe(".gitignore")),
        Attempt::search("a file that is a pipe", top, &["\"links_and_others\":1"]).after(|lab| lab.pipe("pipe")),
        Attempt::search(
            "a pattern that compiles to gigabytes",
            |_| json!({ "pattern": "((a{1000}){1000}){1000}" }),
            &["the pattern cannot be searched for"],
        ),
        Attempt::search("a long pattern", |_| json!({ "pattern": "a".repeat(100_000) }), &["pattern_bytes_max"]),
        Attempt::search(
            "a deep pattern",
            |_| json!({ "pattern": format!("{}a{}", "(".repeat(400), ")".repeat(400)) }),
            &["the pattern cannot be searched for"],
        ),
        Attempt::search(
            "a pattern that takes others for ever",
            |_| json!({ "pattern": "(x+x+)+y" }),
            &["\"matches\":[]"],
        )
        .after(|lab| lab.write("x", &"x".repeat(1_000_000))),
        Attempt::search(
            "a bomb of matches",
            |_| json!({ "pattern": "x", "matches_max": 1_000_000_000 }),
            &["\"stopped_at\":\"matches_max\""],
        )
        .after(|lab| lab.write("x", &"x\n".repeat(100_000))),
        Attempt::search("a line without an end", |_| json!({ "pattern": "x" }), &["truncated"])
            .after(|lab| lab.write("x", &"x".repeat(5_000_000))),
        Attempt::search("a tree without a bottom", top, &["depth_max"]).after(|lab| lab.deep(140)),
        Attempt::search(
            "more around a match than may be",
            |_| json!({ "pattern": "5", "context_lines": 1_000_000 }),
            &["\"text\":\"0\""],
        )
        .after(|lab| lab.write("n", "0\n1\n2\n3\n4\n5\n")),
    ])
    .await;
}

#[tokio::test]
async fn git_shows_the_run_and_moves_nothing() {
    let no_hash = &["is no commit's name", "no hash", "not a hash", "hexadecimal"];
    check(vec![
        Attempt::git("an option for a commit", "show", |_| json!({ "commit": "--output=/tmp/x" }), no_hash),
        Attempt::git("a file of another commit", "show", |_| json!({ "commit": "HEAD:secret.txt" }), no_hash),
        Attempt::git("another branch by name", "show", |_| json!({ "commit": "private" }), no_hash),
        Attempt::git(
            "another branch by hash",
            "show",
            |lab| json!({ "commit": lab.private() }),
            &["is a commit of another branch"],
        ),
        Attempt::git("a reflog", "show", |_| json!({ "commit": "HEAD@{1}" }), no_hash),
        Attempt::git("a path above", "diff", |_| json!({ "path": "../../outside" }), &["has `..`"]),
        Attempt::git("an option for a path", "diff", |_| json!({ "path": "--no-index" }), &["\"patch\":\"\""]),
        Attempt::git(
            "a link out of the tree",
            "commit",
            |_| json!({ "message": "m" }),
            &["leads out of the tree", "link"],
        )
        .after(|lab| lab.link(lab.outside().join("secret.txt"), "s")),
        Attempt::git("a link out of the tree in a diff", "diff", |_| json!({}), &["link"])
            .after(|lab| lab.link(lab.outside().join("secret.txt"), "s")),
        Attempt::git(
            "a commit past the judge",
            "commit",
            |_| json!({ "message": "m" }),
            &["refs/longhaul/checkpoints/"],
        )
        .after(|lab| lab.write("new.txt", "new")),
        Attempt::git("a program for differences", "diff", |_| json!({}), &["+new"]).after(|lab| {
            lab.write(".gitattributes", "* diff=evil filter=evil\n");
            lab.write("a.txt", "new\n");
        }),
        Attempt::git("a hook of the tree", "commit", |_| json!({ "message": "m" }), &["refs/longhaul/checkpoints/"])
            .after(|lab| {
                lab.write(".git/hooks/post-commit", "#!/bin/sh\necho EVIL\n");
                lab.write("a.txt", "two\n");
            }),
        Attempt::git("an empty message", "commit", |_| json!({ "message": " \n" }), &["the message is empty"]),
        Attempt::git("a long message", "commit", |_| json!({ "message": "m".repeat(100_000) }), &["message_bytes_max"]),
        Attempt::git("an unknown function", "push", |_| json!({}), &["there is no function `push`"]),
        Attempt::git(
            "a branch as an argument",
            "commit",
            |_| json!({ "message": "m", "branch": "main" }),
            &["unknown field `branch`"],
        ),
    ])
    .await;
}

/// A directory that is swapped for a link while programs are started in it.
#[tokio::test]
async fn a_race_for_the_place_to_start_in_gains_nothing() {
    let lab = Lab::new();
    lab.write("dir/mine.txt", "mine");
    lab.link(lab.outside(), "out");
    let tree = lab.tree();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let racer = std::thread::spawn({
        let (tree, done) = (tree.clone(), done.clone());
        move || {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                // Swaps the two names at once, back and forth.
                let dir = rustix::fs::open(&tree, rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
                rustix::fs::renameat_with(&dir, "dir", &dir, "out", rustix::fs::RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    for _ in 0..25 {
        let told = lab
            .call("shell", "run", &json!({ "argv": ["cat", "secret.txt", "mine.txt"], "cwd": "dir" }), &json!({}))
            .await;
        assert!(!told.contains(SECRET), "{told}");
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    racer.join().unwrap();
    lab.untouched("a race");
}

/// The machine's git, in a directory of the tree.
fn git_in(lab: &Lab, dir: &str, args: &[&str]) {
    let ran = std::process::Command::new("git").args(args).current_dir(lab.tree().join(dir)).output().unwrap();
    assert!(ran.status.success(), "{args:?}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// A repository with one commit and a change, which git sees by its content alone.
fn repository(lab: &Lab, dir: &str) {
    lab.write(&format!("{dir}/a.txt"), "one\n");
    git_in(lab, dir, &["init", "-q"]);
    for (key, value) in [("user.name", "t"), ("user.email", "t@t")] {
        git_in(lab, dir, &["config", key, value]);
    }
    git_in(lab, dir, &["add", "-A"]);
    git_in(lab, dir, &["commit", "-q", "-m", "start"]);
    lab.write(&format!("{dir}/a.txt"), "two\n");
}

/// Adds to the configuration of a repository.
fn configure(lab: &Lab, dir: &str, more: &[u8]) {
    let path = lab.tree().join(dir).join(".git/config");
    let before = std::fs::read(&path).unwrap();
    std::fs::write(path, [before.as_slice(), more].concat()).unwrap();
}

/// Gives a repository a filter and an alias, which say so where they are started.
fn make_evil(lab: &Lab, dir: &str) {
    lab.write(&format!("{dir}/.git/info/attributes"), "*.txt filter=evil\n");
    configure(lab, dir, b"[filter \"evil\"] clean = \"echo EVIL >&2; cat\"\n[alias] st = !echo EVIL\n");
}

/// `e` with a repository within it that has a filter.
fn nested(lab: &Lab) {
    repository(lab, "e");
    repository(lab, "e/sub");
    git_in(lab, "e", &["add", "sub"]);
    git_in(lab, "e", &["commit", "-q", "-m", "sub"]);
    make_evil(lab, "e/sub");
}

/// `e` with its repository in another place, [`MOVED`] for programs in the sandbox.
fn moved(lab: &Lab) {
    repository(lab, "e");
    make_evil(lab, "e");
    std::fs::rename(lab.tree().join("e/.git"), lab.tree().join("g")).unwrap();
}

const MOVED: &str = "/tmp/work/g";

#[tokio::test]
async fn git_finds_nothing_to_start_in_a_repository_that_is_not_where_it_seems() {
    let fine = &["\"success\":true"];
    let add = |_: &Lab| json!({ "argv": ["git", "add", "a.txt"], "cwd": "e" });
    let git = Attempt::shell_git;
    check(vec![
        git("a file that names its place", by_file, add, fine),
        git("its alias", by_file, |_| json!({ "argv": ["git", "st"], "cwd": "e" }), &["\"success\":false"]),
        git(
            "a file that names what is shared",
            |lab| {
                moved(lab);
                lab.write("e/.git/HEAD", "ref: refs/heads/main\n");
                lab.write("e/.git/commondir", MOVED);
            },
            add,
            fine,
        ),
        git(
            "a link",
            |lab| {
                moved(lab);
                lab.link(MOVED, "e/.git");
            },
            add,
            fine,
        ),
        git(
            "a configuration that is a link",
            |lab| {
                repository(lab, "e");
                make_evil(lab, "e");
                std::fs::rename(lab.tree().join("e/.git/config"), lab.tree().join("innocent")).unwrap();
                lab.link("/tmp/work/innocent", "e/.git/config");
            },
            add,
            &["is no file of at most 1 MiB, so git is not started"],
        ),
        git(
            "words of an option",
            moved,
            |_| json!({ "argv": ["git", "--git-dir", "../g", "--work-tree", ".", "add", "a.txt"], "cwd": "e" }),
            fine,
        ),
    ])
    .await;
}

fn by_file(lab: &Lab) {
    moved(lab);
    lab.write("e/.git", &format!("gitdir: {MOVED}\n"));
}

#[tokio::test]
async fn git_finds_nothing_to_start_in_a_repository_within_another() {
    let fine = &["\"success\":true"];
    let git = |name, arguments: fn(&Lab) -> Value| Attempt::shell_git(name, nested, arguments, fine);
    check(vec![
        git("its state", |_| json!({ "argv": ["git", "status"], "cwd": "e" })),
        git("its differences", |_| json!({ "argv": ["git", "diff"], "cwd": "e" })),
        git("adding all", |_| json!({ "argv": ["git", "add", "-A"], "cwd": "e" })),
        git("a commit of all", |_| json!({ "argv": ["git", "commit", "-a", "-m", "x"], "cwd": "e" })),
        git("its state by words", |_| json!({ "argv": ["git", "-C", "sub", "status"], "cwd": "e" })),
        git("its alias", |_| json!({ "argv": ["git", "-C", "e/sub", "st"] })).told(&["\"success\":false"]),
        git("a configuration that includes another", |_| json!({ "argv": ["git", "status"], "cwd": "e" }))
            .after(|lab| {
                nested(lab);
                configure(lab, "e/sub", b"[include] path = more\n");
            })
            .told(&["`e/sub/.git/config` includes other configuration"]),
    ])
    .await;
}

#[tokio::test]
async fn git_starts_no_filter_by_a_name_that_is_hard_to_read() {
    let add = |_: &Lab| json!({ "argv": ["git", "add", "a.txt"], "cwd": "e" });
    let git = |name, prepare: fn(&Lab), told: &'static [&'static str]| Attempt::shell_git(name, prepare, add, told);
    check(vec![
        git(
            "a name in two parts",
            |lab| {
                repository(lab, "e");
                lab.write("e/.git/info/attributes", "*.txt filter=sub.evil\n");
                configure(lab, "e", b"[filter.sub \"evil\"] clean = \"echo EVIL >&2; cat\"\n");
            },
            &["\"success\":true"],
        ),
        git(
            "a name that is no text",
            |lab| {
                repository(lab, "e");
                std::fs::write(lab.tree().join("e/.git/info/attributes"), b"*.txt filter=\xff\n").unwrap();
                configure(lab, "e", b"[filter \"\xff\"] clean = \"echo EVIL >&2; cat\"\n");
            },
            &["is no text in UTF-8, so git is not started"],
        ),
        git(
            "a hook of the garbage collection",
            |lab| {
                repository(lab, "e");
                configure(lab, "e", b"[gc] recentObjectsHook = \"echo EVIL\"\n");
            },
            &["remove gc.recentObjectsHook from it"],
        ),
    ])
    .await;
}

/// A repository that an agent made in its tree, with everything in its configuration that git would start.
fn evil_repository(lab: &Lab) {
    repository(lab, "evil");
    lab.write("evil/.git/info/attributes", "*.txt filter=evil diff=evil\n");
    let mut config = String::new();
    for (section, key) in [
        ("core", "fsmonitor"),
        ("core", "pager"),
        ("core", "editor"),
        ("core", "sshCommand"),
        ("gpg", "program"),
        ("diff", "external"),
        ("filter \"evil\"", "clean"),
        ("filter \"evil\"", "smudge"),
        ("diff \"evil\"", "textconv"),
        ("credential", "helper"),
        ("alias", "st"),
    ] {
        let bang = if matches!(section, "alias" | "credential") { "!" } else { "" };
        config.push_str(&format!("[{section}] {key} = \"{bang}touch $PWD/mark-{key}; cat\"\n"));
    }
    config.push_str("[commit] gpgSign = true\n[log] showSignature = true\n");
    configure(lab, "evil", config.as_bytes());
    for hook in ["pre-commit", "post-commit", "post-index-change"] {
        use std::os::unix::fs::PermissionsExt;
        lab.write(&format!("evil/.git/hooks/{hook}"), "#!/bin/sh\ntouch $PWD/mark-hook\n");
        let hook = lab.tree().join(format!("evil/.git/hooks/{hook}"));
        std::fs::set_permissions(hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn git_starts_nothing_that_a_repository_of_an_agent_names() {
    let lab = Lab::new();
    evil_repository(&lab);
    for words in [
        &["git", "status"][..],
        &["git", "diff", "--no-ext-diff"],
        &["git", "diff"],
        &["git", "add", "a.txt"],
        &["git", "commit", "-m", "x"],
        &["git", "log", "-p", "-1", "--no-ext-diff"],
        &["git", "st"],
        &["git", "fetch", "ext::touch $PWD/mark-ext"],
    ] {
        let told = lab.call_with(&["git"], &json!({ "argv": words, "cwd": "evil" })).await;
        let entries = std::fs::read_dir(lab.tree().join("evil")).unwrap().filter_map(Result::ok);
        let marks: Vec<_> =
            entries.map(|one| one.file_name()).filter(|name| name.to_string_lossy().starts_with("mark-")).collect();
        assert!(marks.is_empty(), "{words:?} started {marks:?}: {told:.1000}");
        if words[1] == "commit" {
            assert!(told.contains("\"success\":true"), "what needs none of it works: {told:.1000}");
        }
    }
    // The content of an included file is unknown, so git is not started.
    lab.write("evil/.git/config", "[include]\npath = ../more\n");
    let told = lab.call_with(&["git"], &json!({ "argv": ["git", "status"], "cwd": "evil" })).await;
    assert!(told.contains("remove [include] from it"), "{told:.1000}");
}
