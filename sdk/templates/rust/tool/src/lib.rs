//! The tool `{{name}}`: one function, to begin with.

use longhaul_sdk::tool::CallContext;
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::{Functions, schema};
use serde_json::Value;

/// The tool's functions: `describe` shows them, and every call is checked against them.
fn functions() -> Functions {
    let who = schema::object().required("name", schema::text().about("whom to greet"));
    Functions::new("{{name}}", "Greets by name.")
        // It touches nothing, so it may be repeated. `acts` is for what must not be.
        .read_only("greet", "Greets somebody by name.", who, greet)
}

longhaul_sdk::export_functions!(functions);

/// The arguments of `greet`, which satisfy its schema.
#[derive(serde::Deserialize)]
struct Greet {
    name: String,
}

fn greet(arguments: Greet, _: &CallContext) -> Result<Value, ToolError> {
    Ok(serde_json::json!({ "greeting": format!("Hello, {}!", arguments.name) }))
}
