//! The tool `files`: look at files and change them, below one granted directory.
//!
//! Paths are relative and stay inside; links are not followed; `.git` is not touched. A write goes
//! to a temporary name and is renamed, so no reader sees half a file, and a change that was cut off
//! can be verified by digest. It deletes single files alone, and executes nothing.

mod arguments;
mod change;
mod describe;
mod diff;
mod disk;
mod look;
mod path;
mod redo;
mod text;

use longhaul_sdk::tool::{CallContext, Tool, Verification};
use longhaul_sdk::tools::{ToolError, ToolInfo, ToolResult};
use serde_json::Value;

use arguments::{Settings, arguments};
use change::Change;

struct Files;

impl Tool for Files {
    fn describe(_: String) -> Result<ToolInfo, ToolError> {
        Ok(describe::tool())
    }

    fn prepare(function: String, arguments: String, context: CallContext) -> Result<String, ToolError> {
        match change::of(&function, &arguments, &Settings::read(&context.settings)?)? {
            Some(planned) => Ok(planned.change.to_json().to_string()),
            None => Ok("{}".to_owned()),
        }
    }

    fn verify(function: String, _: String, prepared: String, _: CallContext) -> Result<Verification, ToolError> {
        let Some(change) = Change::from_json(&prepared) else {
            let text = format!("nothing was noted before `{function}` started");
            return Ok(Verification::Unknown(text));
        };
        let root = disk::root()?;
        let verdict = change.verdict(|path| disk::digest(&root, path))?;
        Ok(match verdict {
            change::Verdict::Happened => Verification::Happened(result(&change.answer(&function), false)),
            change::Verdict::DidNot => Verification::DidNotHappen,
            change::Verdict::Unknown(text) => Verification::Unknown(text),
        })
    }

    fn call(function: String, text: String, context: CallContext) -> Result<ToolResult, ToolError> {
        let settings = Settings::read(&context.settings)?;
        match function.as_str() {
            "read" => look::read(&arguments(&text)?, &settings).map(cut_or_whole),
            "list" => look::list(&arguments(&text)?).map(cut_or_whole),
            "search" => look::search(&arguments(&text)?).map(cut_or_whole),
            _ => change::apply(&function, &text, &context.idempotency_key, &settings)
                .map(|output| result(&output, false)),
        }
    }
}

longhaul_sdk::export_tool!(Files);

fn cut_or_whole(output: Value) -> ToolResult {
    let truncated = output["truncated"] == true;
    result(&output, truncated)
}

fn result(output: &Value, truncated: bool) -> ToolResult {
    ToolResult { output: output.to_string(), truncated }
}
