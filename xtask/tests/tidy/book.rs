//! The book: its generated pages are what the sources say, its links lead somewhere, and its table of contents lists
//! every page.
//!
//! The pages that a running program describes are compared by the gate, once the program is built.

use std::process::Command;

#[test]
fn the_book_is_what_its_sources_say_and_its_links_lead_somewhere() {
    let said = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["docs", "--check", "--no-program"]).output();
    let said = said.expect("xtask runs");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
