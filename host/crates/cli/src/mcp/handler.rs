//! Handler of MCP requests: lists tools, calls them, and asks the client's user.
//!
//! A verb that needs an answer of a person asks for it by `input_required`, if the client speaks that revision of the
//! protocol, and otherwise by `elicitation/create`. A client that supports neither is told which argument to add.

use super::done::{PersonAnswer, VerbResult};
use super::plugins::{CommandGrants, Plugins};
use super::verbs;
use crate::command_client::CommandClient;
use crate::context::Context;
use longhaul_core::fault;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
    ElicitationAction, ErrorData, Implementation, InputRequest, InputRequests, InputRequiredResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Name of the field of the one question that a call can ask.
const QUESTION: &str = "text";

/// Description of the server for the client's model.
const INSTRUCTIONS: &str = "Longhaul runs long-lived agents on projects. `longhaul_run` starts work that goes on by \
    itself; look at it with `longhaul_status`, and answer what it asks with `longhaul_answer`; what \
    an agent may only do with a person's word waits for `longhaul_approve`.";

/// The server that all clients share.
#[derive(Clone)]
pub struct McpHandler(Arc<Inner>);

struct Inner {
    /// Its client is kept as long as the server, since this process works on the runs that the server starts.
    context: Context,
    plugins: Plugins,
}

impl McpHandler {
    pub fn new(context: &Context, given: CommandGrants) -> fault::Result<Self> {
        let (home, project, owner) = (context.home.clone(), context.project.clone(), Arc::clone(&context.owner));
        let client = CommandClient::new(&home, &project, &owner);
        client.keep();
        let context = Context { home, project, names_project: true, json: true, trust: false, client, owner };
        let plugins = Plugins::new(&context, given);
        Ok(Self(Arc::new(Inner { context, plugins })))
    }

    /// Stops the runs of this process. They can be resumed later.
    pub async fn close(&self) {
        self.0.context.client.close().await;
    }

    async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        said: Option<PersonAnswer>,
    ) -> fault::Result<VerbResult> {
        if let Some(verb) = verbs::find(name) {
            return verb.call(&self.0.context, Value::Object(arguments), said).await;
        }
        self.0.plugins.call(name, Value::Object(arguments)).await.map(VerbResult::Value)
    }

    async fn asked(
        &self,
        request: CallToolRequestParams,
        (question, choices, about): (String, &[&str], Option<String>),
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let can = context.client_capabilities().is_some_and(|client| client.elicitation.is_some());
        if !can {
            let takes_text = verbs::find(&request.name).is_some_and(verbs::Verb::takes_text);
            let how = if takes_text { "Say it with the argument `text`." } else { "This client cannot ask a person." };
            return Ok(failed(&format!("{question}\n{how}")));
        }
        let speaks = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        let params = form(question, choices)?;
        if speaks {
            let requests =
                InputRequests::from([(QUESTION.to_owned(), InputRequest::Elicitation(ElicitRequest::new(params)))]);
            return Ok(InputRequiredResult::new(Some(requests), about).into());
        }
        let said = context.peer.create_elicitation(params).await;
        let said = said.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let text = said.content.as_ref().and_then(|content| content[QUESTION].as_str());
        match (said.action, text) {
            (ElicitationAction::Accept, Some(text)) => {
                Ok(self.answered(request, PersonAnswer { text: text.to_owned(), about }).await)
            }
            _ => Ok(failed("the question was not answered, and nothing was done")),
        }
    }

    /// Repeats a call with the person's answer.
    async fn answered(&self, request: CallToolRequestParams, said: PersonAnswer) -> CallToolResponse {
        match self.call(&request.name, request.arguments.unwrap_or_default(), Some(said)).await {
            Ok(VerbResult::Value(value)) => succeeded(value),
            Ok(VerbResult::Asks { question, .. }) => failed(&question),
            Err(error) => failed(&format!("{error:#}")),
        }
    }
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("longhaul", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = verbs::tools();
        tools.extend(self.0.plugins.tools().await);
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(answers) = &request.input_responses {
            let answer = answers.get(QUESTION).cloned().unwrap_or_default();
            let Some(text) = answer["content"][QUESTION].as_str().filter(|_| answer["action"] == "accept") else {
                return Ok(failed("the question was not answered, and nothing was done"));
            };
            let said = PersonAnswer { text: text.to_owned(), about: request.request_state.clone() };
            return Ok(self.answered(request, said).await);
        }
        match self.call(&request.name, request.arguments.clone().unwrap_or_default(), None).await {
            Ok(VerbResult::Value(value)) => Ok(succeeded(value)),
            Ok(VerbResult::Asks { question, choices, about }) => {
                self.asked(request, (question, choices, about), &context).await
            }
            Err(error) => Ok(failed(&format!("{error:#}"))),
        }
    }
}

fn form(message: String, choices: &[&str]) -> Result<ElicitRequestParams, ErrorData> {
    let mut answer = json!({ "type": "string", "description": "The answer" });
    if !choices.is_empty() {
        answer["enum"] = json!(choices);
    }
    let schema = json!({
        "type": "object",
        "properties": { QUESTION: answer },
        "required": [QUESTION],
    });
    let requested_schema =
        serde_json::from_value(schema).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

fn succeeded(value: Value) -> CallToolResponse {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = value.is_object().then_some(value);
    result.into()
}

fn failed(text: &str) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(text)]).into()
}
