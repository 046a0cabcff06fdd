//! A line that counts as one plain command is one for real shells: they read the same words, and nothing else happens.

use longhaul_approval::{ShellCommand, command_line};
use std::io::Write;
use std::process::{Command as Process, Stdio};

/// Everything to which some shell gives a meaning, some letters, and what looks like them.
const ALPHABET: &[&str] = &[
    "a", "git", "x1", " ", " ", " ", "'", "'", "\"", "\"", "\\", "$", "`", ";", "&", "|", "<", ">", "(", ")", "{", "}",
    "[", "]", "*", "?", "!", "#", "~", "=", "^", "%", "-", "/", ".", ",", ":", "@", "+", "_", "\n", "\t", "é", "日",
    "\u{a0}", "\u{200b}", "$(", "${", "if", "do", "0",
];

/// Lines of pieces of the alphabet, the same each time.
fn lines(count: usize) -> impl Iterator<Item = String> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).expect("below a length")
    };
    (0..count).map(move |_| {
        let pieces = 1 + next(9);
        (0..pieces).map(|_| ALPHABET[next(ALPHABET.len())]).collect()
    })
}

/// The words that a shell gets of each line, in an empty directory.
fn words_by(shell: &str, lines: &[String], directory: &std::path::Path) -> Vec<Vec<String>> {
    let mut script = String::new();
    for line in lines {
        // `echo` has no part in it: the words are printed by name and kept apart by bytes that no line has.
        script.push_str(&format!("set -- {line}\nprintf '%s\\001' \"$@\"\nprintf '\\002'\n"));
    }
    let mut child = Process::new(shell)
        .current_dir(directory)
        .env_clear()
        .env("HOME", "/nowhere")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap_or_else(|error| panic!("{shell}: {error}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads");
    assert!(output.status.success(), "{shell}: {:?}", output.status);
    let text = String::from_utf8(output.stdout).expect("text");
    let of_line = |line: &str| line.split_terminator('\u{1}').map(str::to_owned).collect();
    text.split_terminator('\u{2}').map(of_line).collect()
}

#[test]
fn real_shells_see_the_same_words_in_every_line_that_is_taken_for_plain() {
    let mut plain = Vec::new();
    for line in lines(60_000) {
        // A program stands in front, as in lines that people approve of; the rest is at random.
        for line in [line.clone(), format!("git {line}")] {
            if let Ok(ShellCommand { program, arguments }) = command_line(&line) {
                plain.push((line, [vec![program], arguments].concat()));
            }
        }
    }
    assert!(plain.len() > 1_000, "only {} lines are plain, which proves little", plain.len());
    let lines: Vec<String> = plain.iter().map(|(line, _)| line.clone()).collect();
    for shell in ["sh", "bash"] {
        let directory = tempfile::tempdir().expect("a directory");
        let seen = words_by(shell, &lines, directory.path());
        assert_eq!(seen.len(), plain.len(), "{shell} lost its way");
        let differ: Vec<_> = plain.iter().zip(&seen).filter(|((_, ours), theirs)| ours != *theirs).take(10).collect();
        assert!(differ.is_empty(), "{shell}: {differ:#?}");
        let made = std::fs::read_dir(directory.path()).expect("ours").count();
        assert_eq!(made, 0, "{shell} wrote files");
    }
}
