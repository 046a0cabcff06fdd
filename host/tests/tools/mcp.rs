//! MCP both ways, with programs of others: the reference servers `mcp-server-time` and `mcp-server-git`, a server and a
//! client made with the Python SDK, all in the versions of `mcp/requirements.txt`, the reference server
//! `server-everything` in that of `mcp/node`, and a fake for what no honest server
//! does.

mod isolation;
mod servers;
mod serving;

use crate::common::lab::Lab;
use crate::common::python::site;
use crate::common::{in_toml, repository};
use serde_json::{Value, json};

const LIST: &str = "host/tests/tools/mcp/requirements.txt";

/// A project whose agent makes these calls, with these tables of servers.
fn lab(tools: &[&str], servers: &str, calls: &[(&str, &str, Value)]) -> Lab {
    let lab = Lab::empty();
    make_project(&lab, tools, servers, calls);
    lab
}

fn make_project(lab: &Lab, tools: &[&str], servers: &str, calls: &[(&str, &str, Value)]) {
    let call = |(tool, function, arguments): &(&str, &str, Value)| {
        let arguments = in_toml(arguments);
        format!("{{ tool = \"{tool}\", function = \"{function}\", arguments = {arguments} }}")
    };
    let calls = calls.iter().map(call).collect::<Vec<_>>().join(", ");
    let servers = answers_allowed(tools, servers);
    let config = format!(
        "[project]\nname = \"kept\"\n[agents.code]\nplugin = \"caller\"\ntools = {tools:?}\nsettings = {{ calls = [{calls}] }}\n\
         [evaluator]\nplugin = \"lenient\"\n[run.limits]\niterations_max = 1\n{servers}"
    );
    lab.make_project(
        "project",
        &config,
        "# Goal\n\n## Feature: the first\n- id: one\n- criterion: it is fine\n\nDo it.\n",
    );
}

/// Approves of the tools of a server as it describes them now.
fn approve(lab: &Lab, server: &str) {
    lab.run(&["mcp", "accept", server, "--yes"]).expect(0);
}

/// The tables of servers, with what their answers lead to let through: what asks then is tested with `approvals`.
fn answers_allowed(tools: &[&str], servers: &str) -> String {
    let mut servers = servers.to_owned();
    for name in tools.iter().filter_map(|tool| tool.strip_prefix("mcp-")) {
        let (table, allow) = (format!("[mcp.{name}.approval]\n"), "when_heard = \"allow\"\n");
        if servers.contains(&table) {
            servers = servers.replace(&table, &format!("{table}{allow}"));
        } else if servers.contains(&format!("[mcp.{name}]")) {
            servers.push_str(&format!("\n{table}{allow}"));
        }
    }
    servers
}

/// A table of a server that is a module of Python.
fn module(name: &str, module: &str) -> String {
    let site = site(LIST);
    format!("[mcp.{name}]\ncommand = [\"python3\", \"-m\", \"{module}\"]\nenv = {{ PYTHONPATH = {site:?} }}\n")
}

const ONE_TOOL: &str = r#"[{"name":"echo","description":"Say it again.","inputSchema":{"type":"object"}}]"#;

/// A project with the fake server, which says this of its tools, and a person approved of them.
fn faked(said: &str, more: &str, calls: &[(&str, &str, Value)]) -> Lab {
    let lab = unapproved(said, more, calls);
    approve(&lab, "fake");
    lab
}

/// The same before a person approved the tools.
fn unapproved(said: &str, more: &str, calls: &[(&str, &str, Value)]) -> Lab {
    let script = repository().join("host/tests/tools/mcp/fake_server.py");
    let lab = Lab::empty();
    let folder = lab.path("fake");
    std::fs::create_dir(&folder).expect("ours");
    std::fs::write(folder.join("said.json"), said).expect("ours");
    let grants = if more.contains("sandbox = ") { String::new() } else { format!("write = [{folder:?}]\n") };
    let table = format!("[mcp.fake]\ncommand = [\"python3\", {script:?}, {folder:?}]\n{grants}{more}");
    make_project(&lab, &["mcp-fake"], &table, calls);
    lab
}

fn tools_named(names: &[&str]) -> String {
    let tool = |name: &&str| json!({ "name": name, "description": "d", "inputSchema": { "type": "object" } });
    Value::from(names.iter().map(tool).collect::<Vec<_>>()).to_string()
}

fn error(answer: &Value) -> &str {
    answer["error"].as_str().unwrap_or_else(|| panic!("no error: {answer}"))
}
