//! The tool `reader`: gives the first line of a file in the directory that it was granted.
//!
//! A path is relative to that directory. The host refuses one that leads out of it, also through a link.

use longhaul_sdk::filesystem::preopens::get_directories;
use longhaul_sdk::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags, PathFlags};
use longhaul_sdk::tool::CallContext;
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::{Functions, schema};
use serde::Deserialize;
use serde_json::{Value, json};

/// Longest line that it gives, in bytes.
const LINE_BYTES_MAX: u64 = 4_096;

fn functions() -> Functions {
    let path = schema::object().required("path", schema::text().chars(1, 1_000).about("below the granted directory"));
    Functions::new("reader", "Reads files.").read_only(
        "first_line",
        "Gives the first line of a file.",
        path,
        first_line,
    )
}

longhaul_sdk::export_functions!(functions);

#[derive(Deserialize)]
struct Wanted {
    path: String,
}

fn first_line(Wanted { path }: Wanted, _: &CallContext) -> Result<Value, ToolError> {
    let granted = get_directories();
    // Each with the name that `guest` gives it.
    let Some((directory, _)) = granted.iter().find(|(_, guest)| guest == "/work") else {
        return Err(ToolError::Failed("there is no directory /work; grant one in longhaul.toml".to_owned()));
    };
    let failed = |code: ErrorCode| ToolError::Failed(format!("cannot read `{path}`: {}", code.name()));
    // No flag follows a link.
    let (as_it_is, read) = (OpenFlags::empty(), DescriptorFlags::READ);
    let file = directory.open_at(PathFlags::empty(), &path, as_it_is, read).map_err(failed)?;
    let (bytes, _) = file.read(LINE_BYTES_MAX, 0).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(json!({ "line": text.lines().next().unwrap_or_default() }))
}
