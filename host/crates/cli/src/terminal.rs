//! Output of commands, on standard output and standard error.
//!
//! All text is cleaned here, whatever its source, so that no command can forget it. `outln!` and `errln!` print one
//! message of the host. The line breaks in their format string are the host's; any further line is marked as words of
//! others. `outtext!` prints a text of many lines that the host composed, in which each value of others is on one line
//! ([`longhaul_core::text::printable`]). [`document`] prints a requested document, to the letter if a program reads it.
//! JSON passes through all of them unchanged, since its escapes are JSON's.

use longhaul_core::fault::Fault;
use longhaul_core::text::{cleaned, message};
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

/// Prints a message like `println!`, but ends the process instead of panicking if the reader is gone, as other programs
/// in a pipe do. A run that ends so is resumed as after a kill.
macro_rules! outln {
    ($format:literal $($values:tt)*) => {
        $crate::terminal::out_message(
            format_args!($format $($values)*),
            const { $crate::terminal::breaks($format) },
        )
    };
}

/// Prints a message like `outln!`, on standard error. A run goes on even if nobody reads there.
macro_rules! errln {
    ($format:literal $($values:tt)*) => {
        $crate::terminal::error_message(
            format_args!($format $($values)*),
            const { $crate::terminal::breaks($format) },
        )
    };
}

/// Prints a text of many lines that the host composed.
macro_rules! outtext {
    ($text:expr) => {
        $crate::terminal::out_text(AsRef::<str>::as_ref(&$text))
    };
}

/// Counts the line breaks of a format string.
pub(crate) const fn breaks(format: &str) -> usize {
    let (bytes, mut at, mut count) = (format.as_bytes(), 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'\n' {
            count += 1;
        }
        at += 1;
    }
    count
}

/// Prints one message of the host.
pub(crate) fn out_message(text: Arguments<'_>, breaks: usize) {
    write_out(message(&text.to_string(), breaks).as_bytes(), b"\n");
}

/// The same on standard error.
pub(crate) fn error_message(text: Arguments<'_>, breaks: usize) {
    write_error(&format!("{}\n", message(&text.to_string(), breaks)));
}

/// Prints lines that the host composed.
pub(crate) fn out_text(text: &str) {
    write_out(cleaned(text.trim_end()).as_bytes(), b"\n");
}

/// The same on standard error.
pub(crate) fn error_text(text: &str) {
    write_error(&format!("{}\n", cleaned(text.trim_end())));
}

/// Prints a document that was asked for: a file's content, an export, an answer. A program gets it to the letter.
pub(crate) fn document(text: &str) {
    match io::stdout().is_terminal() {
        true => out_text(text),
        false => write_out(text.as_bytes(), b"\n"),
    }
}

/// Passes on the standard output of a program, byte by byte if a program reads it.
pub(crate) fn pass_output(text: &str) {
    match io::stdout().is_terminal() {
        true => write_out(cleaned(text).as_bytes(), b""),
        false => write_out(text.as_bytes(), b""),
    }
}

/// Passes on the standard error of a program in the same way.
pub(crate) fn pass_error(text: &str) {
    match io::stderr().is_terminal() {
        true => write_error(&cleaned(text)),
        false => write_error(text),
    }
}

/// Prints bytes to the letter, for a program that reads them.
pub(crate) fn out_bytes(bytes: &[u8]) {
    write_out(bytes, b"");
}

/// Prints a line in a colour, given as an ANSI number. The line itself is cleaned.
pub(crate) fn out_coloured(line: &str, colour: Option<&str>) {
    match colour {
        Some(colour) => write_out(format!("\x1b[{colour}m{}\x1b[0m", cleaned(line)).as_bytes(), b"\n"),
        None => write_out(cleaned(line).as_bytes(), b"\n"),
    }
}

/// Prints a question, with the cursor left on its line.
pub(crate) fn ask(question: &str) {
    write_error(&message(question, 0));
}

/// Prints the error that ends the program.
pub fn error(error: &Fault) {
    errln!("longhaul: {error:#}");
}

/// Prints the error in the arguments, or the help that they ask for.
pub fn arguments(error: &clap::Error) {
    match error.use_stderr() {
        // It quotes arguments, which may be names of files that others chose.
        true => write_error(&cleaned(&error.render().to_string())),
        false => drop(error.print()),
    }
}

fn write_out(text: &[u8], end: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(text).and_then(|()| out.write_all(end)).and_then(|()| out.flush()).is_err() {
        // 128 + SIGPIPE, as shells report it.
        std::process::exit(141);
    }
}

fn write_error(text: &str) {
    let mut to = io::stderr().lock();
    let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
}

#[cfg(test)]
mod tests {
    #[test]
    fn line_breaks_of_a_format_string_are_counted() {
        assert_eq!((super::breaks("a {b}"), super::breaks("a\n{b}\n")), (0, 2));
    }
}
