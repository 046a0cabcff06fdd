//! Child processes of this program: the compiler in its jail, native checks, a browser, the keeper of a server, a bomb,
//! a local model.
//!
//! They run this same binary with a hidden command, so that no second program has to be installed. They start no log,
//! no runtime and no service.

use super::doctor;
use super::owner::{LocalModel, Owner};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub enum ChildCommand {
    #[command(name = "compile-child", hide = true)]
    Compile(CompileArgs),
    #[command(name = "check-child", hide = true)]
    Check(CheckChildArgs),
    #[command(name = "browser-child", hide = true)]
    Browser(BrowserArgs),
    #[command(name = "mcp-child", hide = true)]
    Mcp(McpChildArgs),
    #[command(name = "keep-child", hide = true)]
    Keep(KeepArgs),
    #[command(name = "bomb-child", hide = true)]
    Bomb(BombArgs),
    #[command(name = "model-child", hide = true)]
    Model(ModelChildArgs),
}

#[derive(Args, Debug)]
pub struct CompileArgs {
    #[arg(long)]
    limits: String,
}

#[derive(Args, Debug)]
pub struct CheckChildArgs {
    spec: String,
}

#[derive(Args, Debug)]
pub struct BrowserArgs {
    spec: String,
}

#[derive(Args, Debug)]
pub struct McpChildArgs {
    spec: String,
}

#[derive(Args, Debug)]
pub struct KeepArgs {
    host: i32,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<std::ffi::OsString>,
}

#[derive(Args, Debug)]
pub struct BombArgs {
    name: String,
}

#[derive(Args, Debug)]
pub struct ModelChildArgs {
    #[arg(long)]
    file: PathBuf,
    #[arg(long)]
    context_tokens_max: usize,
    #[arg(long)]
    memory_bytes_max: u64,
}

/// Runs the child and ends the process with its exit code.
pub fn run(child: ChildCommand, owner: &dyn Owner) -> ! {
    let code = match child {
        ChildCommand::Compile(args) => longhaul_engine::compile_child(&args.limits),
        ChildCommand::Check(args) => longhaul_sandbox::sandbox_child(&args.spec),
        ChildCommand::Browser(args) => longhaul_browser::browser_child(&args.spec),
        ChildCommand::Mcp(args) => longhaul_mcp::mcp_child(&args.spec),
        ChildCommand::Keep(args) => longhaul_mcp::keep_child(args.host, &args.command),
        ChildCommand::Bomb(args) => doctor::bomb_child(&args.name),
        ChildCommand::Model(args) => model(args, owner),
    };
    std::process::exit(code)
}

fn model(args: ModelChildArgs, owner: &dyn Owner) -> i32 {
    let ModelChildArgs { file, context_tokens_max, memory_bytes_max } = args;
    let model = LocalModel { file, context_tokens_max, memory_bytes_max };
    match owner.serve_model(&model) {
        Some(Ok(())) => 0,
        Some(Err(error)) => {
            errln!("{error}");
            1
        }
        None => {
            let message = format!(
                "this longhaul was built without local models, so it cannot serve `{}`; build it with: cargo build --release --features local-model",
                model.file.display()
            );
            outln!("{}", serde_json::json!({ "id": null, "error": { "kind": "unsupported", "message": message } }));
            1
        }
    }
}
