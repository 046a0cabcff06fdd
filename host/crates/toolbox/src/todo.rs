//! `builtin:todo`: an agent's list of intended work.
//!
//! A call replaces the whole list and returns it, so that nothing is stored here: the journal has every version, the
//! events show it to people, and the conversation shows it to the agent. Refuses long lists, and never says what to do
//! next.

use longhaul_core::InvocationId;
use longhaul_core::journal::EffectClass;
use longhaul_core::text::printable;
use longhaul_core::tool::{FunctionInfo, HostTool, ToolCall, ToolError, ToolInfo, ToolOutput};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most items of a list, and bytes of one: a longer list is no plan, and would crowd the conversation.
const ITEMS_MAX: usize = 30;
const TEXT_BYTES_MAX: usize = 200;

/// The tool `builtin:todo`.
pub struct TodoTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    text: String,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Open,
    Doing,
    Done,
}

#[async_trait::async_trait]
impl HostTool for TodoTool {
    async fn info(&self, name: &str) -> Result<ToolInfo, ToolError> {
        let item = json!({
            "type": "object",
            "properties": { "text": { "type": "string" }, "state": { "type": "string", "enum": ["open", "doing", "done"] } },
            "required": ["text", "state"],
            "additionalProperties": false,
        });
        let items = json!({ "items": { "type": "array", "items": item } });
        Ok(ToolInfo {
            id: name.to_owned(),
            description: "Your list of steps, which people watch.".to_owned(),
            functions: vec![FunctionInfo::of(
                "write",
                "Replaces the list of steps.",
                EffectClass::ReadOnly,
                items,
                &["items"],
            )],
        })
    }

    async fn call(
        &self,
        call: &ToolCall,
        _caller: &InvocationId,
        _key: &str,
        _attempt: u32,
    ) -> Result<ToolOutput, ToolError> {
        if call.function != "write" {
            return Err(ToolError::UnknownFunction(format!("`{}`; the tool `{}` has write", call.function, call.tool)));
        }
        let List { items } = call.read()?;
        if items.len() > ITEMS_MAX {
            let wrong = format!("{} items; the most is {ITEMS_MAX}: join small ones", items.len());
            return Err(ToolError::InvalidArguments(wrong));
        }
        Ok(ToolOutput { output: Value::from(shown(&items)).to_string(), truncated: false })
    }
}

/// The first line shows the progress; each item has a line of its own.
fn shown(items: &[Item]) -> String {
    let count = |state: State| items.iter().filter(|item| item.state == state).count();
    let mut text = format!("{} of {} done", count(State::Done), items.len());
    if let Some(now) = items.iter().find(|item| item.state == State::Doing) {
        text.push_str(&format!("; now: {}", printable(&now.text, TEXT_BYTES_MAX)));
    }
    for item in items {
        let mark = match item.state {
            State::Open => "[ ]",
            State::Doing => "[>]",
            State::Done => "[x]",
        };
        text.push_str(&format!("\n{mark} {}", printable(&item.text, TEXT_BYTES_MAX)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn write(arguments: Value) -> Result<Value, ToolError> {
        let call = ToolCall { tool: "todo".into(), function: "write".into(), arguments: arguments.to_string() };
        let answer = TodoTool.call(&call, &InvocationId::from_text("r-1/f-a/1/generate"), "k", 1).await?;
        Ok(serde_json::from_str(&answer.output).expect("JSON"))
    }

    #[tokio::test]
    async fn a_list_is_answered_with_how_far_it_is() {
        let items = json!([
            { "text": "read the tests", "state": "done" },
            { "text": "mend\nthe sum", "state": "doing" },
            { "text": "run the checks", "state": "open" },
        ]);
        let answer = write(json!({ "items": items })).await.expect("taken");
        let shown = answer.as_str().expect("a text").lines().collect::<Vec<_>>();
        assert_eq!(shown.len(), 4, "an item is one line: {shown:?}");
        assert!(shown[0].starts_with("1 of 3 done; now: mend"), "{shown:?}");
        assert_eq!((shown[1], shown[3]), ("[x] read the tests", "[ ] run the checks"));
    }

    #[tokio::test]
    async fn a_list_without_end_is_refused_with_its_cap() {
        let items: Vec<Value> = (0..31).map(|_| json!({ "text": "x", "state": "open" })).collect();
        let wrong = write(json!({ "items": items })).await.expect_err("too many").to_string();
        assert!(wrong.contains("31 items; the most is 30"), "{wrong}");
        assert!(write(json!({ "items": [{ "text": "x", "state": "later" }] })).await.is_err());
    }
}
