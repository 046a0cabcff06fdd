//! Lists the files of the web page, so that the binary carries whatever is there.

use std::fmt::Write as _;
use std::path::Path;

/// The directory of the files.
const PAGE: &str = "src/page";

fn main() {
    println!("cargo::rerun-if-changed={PAGE}");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")).join(PAGE);
    let found = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let files = found.map(|entry| entry.expect("a folder that can be read").path());
    // Tests of the page lie beside it and are no part of it.
    let mut files: Vec<_> = files.filter(|path| path.is_file() && !name(path).contains(".test.")).collect();
    files.sort();
    let mut text = "/// Each file of the page, by its name.\npub const FILES: &[(&str, &[u8])] = &[\n".to_owned();
    for path in &files {
        writeln!(text, "    ({:?}, include_bytes!({:?})),", name(path), path.display().to_string()).expect("memory");
    }
    text.push_str("];\n");
    std::fs::write(Path::new(&variable("OUT_DIR")).join("page.rs"), text).expect("cargo's own folder can be written");
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("names of the page are text")
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
