//! The description of the tool: names, texts for the model, schemas, effects.

use longhaul_sdk::tools::{EffectClass, Function, ToolInfo};
use serde_json::{Value, json};

pub(crate) fn tool() -> ToolInfo {
    ToolInfo {
        id: "files".to_owned(),
        description: "Files of the project. Paths are relative to its top.".to_owned(),
        functions: vec![read(), write(), list(), search(), edit(), multi_edit(), patch(), delete(), r#move()],
    }
}

fn read() -> Function {
    let properties = json!({
        "path": { "type": "string" },
        "offset": { "type": "integer", "minimum": 0, "description": "first byte, default 0" },
        "limit": { "type": "integer", "minimum": 1, "description": "most bytes" }
    });
    function("read", "Reads a text file.", &properties, &["path"], EffectClass::ReadOnly)
}

fn write() -> Function {
    let properties = json!({ "path": { "type": "string" }, "content": { "type": "string" } });
    let text = "Writes a whole text file, making directories as needed.";
    function("write", text, &properties, &["path", "content"], EffectClass::Verifiable)
}

fn list() -> Function {
    let properties = json!({
        "path": { "type": "string", "description": "a directory, default the top" },
        "recursive": { "type": "boolean", "description": "default false" }
    });
    function("list", "Lists a directory.", &properties, &[], EffectClass::ReadOnly)
}

fn search() -> Function {
    let properties = json!({
        "query": { "type": "string", "description": "a text within one line" },
        "glob": { "type": "boolean", "description": "the query is a pattern with * and ?" },
        "path": { "type": "string", "description": "a directory, default the top" },
        "files": { "type": "string", "description": "pattern of file names, such as *.py" },
        "ignore_case": { "type": "boolean" }
    });
    function("search", "Finds lines in text files.", &properties, &["query"], EffectClass::ReadOnly)
}

fn edit() -> Function {
    let properties = json!({
        "path": { "type": "string" },
        "old": { "type": "string", "description": "text that is in the file exactly once" },
        "new": { "type": "string", "description": "what stands there afterwards" }
    });
    let text = "Replaces one place in a text file.";
    function("edit", text, &properties, &["path", "old", "new"], EffectClass::Verifiable)
}

fn multi_edit() -> Function {
    let edit = json!({
        "type": "object",
        "properties": { "old": { "type": "string" }, "new": { "type": "string" } },
        "required": ["old", "new"],
        "additionalProperties": false
    });
    let properties = json!({ "path": { "type": "string" }, "edits": { "type": "array", "items": edit } });
    let text = "Replaces several places in a text file, one after the other; all of them or none.";
    function("multi_edit", text, &properties, &["path", "edits"], EffectClass::Verifiable)
}

fn patch() -> Function {
    let properties =
        json!({ "patch": { "type": "string", "description": "with `--- a/PATH`, `+++ b/PATH` and `@@` lines" } });
    let text = "Applies a unified diff, of one file or several; all of it or nothing.";
    function("patch", text, &properties, &["patch"], EffectClass::Verifiable)
}

fn delete() -> Function {
    let properties = json!({ "path": { "type": "string" } });
    function("delete", "Deletes one file.", &properties, &["path"], EffectClass::Verifiable)
}

fn r#move() -> Function {
    let properties = json!({ "from": { "type": "string" }, "to": { "type": "string" } });
    let text = "Moves or renames one file; nothing may be where it goes.";
    function("move", text, &properties, &["from", "to"], EffectClass::Verifiable)
}

fn function(name: &str, description: &str, properties: &Value, required: &[&str], effect: EffectClass) -> Function {
    let parameters = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    });
    Function { name: name.to_owned(), description: description.to_owned(), parameters: parameters.to_string(), effect }
}
