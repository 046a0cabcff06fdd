//! An author with nothing but the program: makes a plugin in an empty folder and builds it, and gets one clear
//! line for whatever is wrong.
//!
//! Tools come from the cache of this machine; where that is empty, the first run fetches them.

use crate::common::author::{Author, last_line, one_line};
use longhaul_core::Digest;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Makes a tool and builds it; the component is what it says it is.
#[track_caller]
fn a_tool_is_made_and_built(author: &Author, language: &str) {
    let name = format!("my-{language}-tool");
    author.runs(&["plugin", "new", &name, "--kind", "tool", "--lang", language]);
    let built: Value = serde_json::from_str(&author.runs(&["plugin", "build", &name, "--json"])).expect("JSON");
    let path = Path::new(built["path"].as_str().expect("a path"));
    assert!(path.ends_with(format!("{name}/target/{name}.wasm")), "{built}");
    let bytes = fs::read(path).expect("the component is there");
    assert_eq!(built["digest"], Digest::of(&bytes).to_string());
    assert_eq!(built["bytes"], bytes.len());
    // One file is the plugin: it carries what it asks for.
    let alone = author.path("alone.wasm");
    fs::copy(path, &alone).expect("it can be copied");
    let shown = author.runs(&["plugin", "inspect", alone.to_str().expect("text")]);
    assert!(shown.starts_with("tool for contract 0.1.0"), "{shown}");
    assert!(shown.contains(&format!("\n{name} 0.1.0: ")) && shown.contains("\nasks for nothing\n"), "{shown}");
}

#[test]
fn a_tool_in_rust_builds_at_once_and_a_mistake_shows_the_compilers_words() {
    let author = Author::new();
    a_tool_is_made_and_built(&author, "rust");
    let source = author.read("my-rust-tool/src/lib.rs");
    author.write("my-rust-tool/src/lib.rs", &source.replace("serde_json::json!", "serde_json::jason!"));
    let text = author.refuses(&["plugin", "build", "my-rust-tool"]);
    assert!(text.contains("cannot find macro `jason`") || text.contains("could not find `jason`"), "{text}");
    one_line(&last_line(&text), "`cargo` ended with exit status: 101; see above");
}

#[test]
fn a_tool_in_python_builds_at_once_and_a_mistake_shows_the_compilers_words() {
    let author = Author::new();
    a_tool_is_made_and_built(&author, "python");
    let source = author.read("my-python-tool/app.py");
    author.write("my-python-tool/app.py", &source.replace("def greet(", "deaf greet("));
    let text = author.refuses(&["plugin", "build", "my-python-tool"]);
    assert!(text.contains("SyntaxError") && text.contains("deaf greet("), "{text}");
}

#[test]
fn a_tool_in_javascript_builds_at_once_and_a_mistake_shows_the_compilers_words() {
    let author = Author::new();
    a_tool_is_made_and_built(&author, "js");
    let source = author.read("my-js-tool/app.js");
    author.write("my-js-tool/app.js", &source.replace("export ", "exported "));
    let text = author.refuses(&["plugin", "build", "my-js-tool"]);
    assert!(text.contains("ERROR") && text.contains("app.js:"), "{text}");
    author.write("my-js-tool/app.js", &format!("import {{ readFileSync }} from \"node:fs\";\n{source}"));
    let text = author.refuses(&["plugin", "build", "my-js-tool"]);
    assert!(text.contains("`node:fs` is a module of Node") && text.contains("wasi:filesystem/preopens"), "{text}");
}

#[test]
fn a_tool_in_c_builds_at_once_and_a_mistake_shows_the_compilers_words() {
    let author = Author::new();
    a_tool_is_made_and_built(&author, "c");
    let source = author.read("my-c-tool/app.c");
    author.write("my-c-tool/app.c", &source.replace("lh_text_of(", "lh_test_of("));
    let text = author.refuses(&["plugin", "build", "my-c-tool"]);
    assert!(text.contains("app.c:") && text.contains("lh_test_of"), "{text}");
    let printing = source
        .replace("(void)err;", "(void)err; printf(\"hello\");")
        .replace("#include", "#include <stdio.h>\n#include");
    author.write("my-c-tool/app.c", &printing);
    one_line(
        &last_line(&author.refuses(&["plugin", "build", "my-c-tool"])),
        "printf, fopen, time and the like of libc",
    );
}

#[test]
fn what_cannot_be_made_is_said_on_one_line() {
    let author = Author::new();
    let refuses = |name: &str, kind: &str, language: &str, expected: &str| {
        let text = author.refuses(&["plugin", "new", name, "--kind", kind, "--lang", language]);
        one_line(&text, expected);
    };
    refuses("a", "tool", "cobol", "there is no language `cobol` here; write one of: rust, python, js, c");
    refuses("a", "daemon", "rust", "there is no kind `daemon` of plugin; write one of: agent,");
    refuses("../a", "tool", "rust", "`../a` is no name of a plugin; take lower-case letters");
    refuses("Word_Count", "tool", "rust", "is no name of a plugin");
    refuses("lambda", "tool", "rust", "take another name, such as `my-lambda`");
    refuses("serde", "tool", "rust", "is the name of a library that plugins use");
    author.write("taken/mine.txt", "mine");
    refuses("taken", "tool", "rust", "is there already; take another name");
    assert_eq!(author.read("taken/mine.txt"), "mine");
    assert_eq!(fs::read_dir(author.place.path()).expect("readable").count(), 1, "nothing else was made");
}

#[test]
fn a_project_that_cannot_be_built_says_why_on_one_line() {
    let author = Author::new();
    one_line(&author.refuses(&["plugin", "build"]), "plugin.toml`; name the folder of a plugin, or make one with");
    one_line(&author.refuses(&["plugin", "build", "nowhere"]), "there is no `");
    let refuses = |manifest: &str, expected: &str| {
        author.write("p/plugin.toml", manifest);
        one_line(&author.refuses(&["plugin", "build", "p"]), expected);
    };
    const TOP: &str = "name = \"a\"\nversion = \"0.1.0\"\nworld = \"tool-plugin\"\n";
    const PYTHON: &str = "[build]\nlanguage = \"python\"\nmodule = \"app\"\n";
    refuses("name = \"a\"\nversion = \n", "p/plugin.toml`, line 2: ");
    refuses(&TOP.replace("\"a\"", "\"../a\""), "is no name of a plugin");
    refuses(&format!("{TOP}[build]\nlanguage = \"cobol\"\n"), "there is no language `cobol` here");
    refuses(&format!("{TOP}{PYTHON}[asks]\nmodel = true\n"), "unknown field `model`");
    refuses(&format!("{TOP}{PYTHON}"), "has no module `app`; write app.py");
    author.write("p/app.py", "");
    refuses(&format!("{TOP}{PYTHON}paths = [\"../sdk\"]\n"), "which is no folder; mend `paths` under [build]");
    refuses(
        &format!("{TOP}{PYTHON}").replace("tool-plugin", "gadget-plugin"),
        "asks for the world `gadget-plugin`, which is not in wit/v0.1; it has: `agent-plugin`",
    );
}

#[test]
fn a_missing_tool_chain_is_named_with_how_to_get_it() {
    let author = Author::new();
    for (language, program, remedy) in
        [("rust", "`rustc`", "install Rust with rustup"), ("python", "`python3`", "install Python 3 with pip")]
    {
        let name = format!("my-{language}");
        author.runs(&["plugin", "new", &name, "--kind", "tool", "--lang", language]);
        let app = format!("{name}/app.py");
        if author.path(&app).is_file() {
            // One that was never built: what was built once is taken from the cache.
            let text = format!("{}\n# {:?}\n", author.read(&app), author.place.path());
            author.write(&app, &text);
        }
        let mut build = author.command(&["plugin", "build", &name]);
        let text = author.refuses_with(build.env("PATH", author.path("nothing")));
        let last = last_line(&text);
        one_line(&last, &format!("{program} does not start"));
        assert!(last.contains(remedy), "{last}");
    }
}

#[test]
fn an_interpreter_is_made_once_and_somebody_elses_is_left_alone() {
    let author = Author::new();
    let text = author.refuses(&["runtimes", "pull", "perl"]);
    one_line(&text, "there is no interpreter `perl`; write one of: python, javascript");
    author.runs(&["runtimes", "pull", "python"]);
    let component = author.path("home/plugins/python.wasm");
    let made = fs::metadata(&component).expect("it is there").modified().expect("a time");
    assert!(author.runs(&["runtimes", "pull", "python"]).starts_with("python       ready"));
    assert_eq!(fs::metadata(&component).expect("it is there").modified().expect("a time"), made);
    // One that was made of other sources is made again.
    author.write("home/plugins/python.wasm", "half of it");
    assert!(author.runs(&["runtimes", "pull", "python"]).starts_with("python       made in"));
    fs::remove_file(&component).expect("it is there");
    author.write("home/plugins/python.wasm", "mine");
    one_line(&author.refuses(&["runtimes", "pull", "python"]), "was not made by this command");
    assert_eq!(author.read("home/plugins/python.wasm"), "mine");
}
