//! `longhaul mcp`: runs this program as an MCP server, over standard input and output or over HTTP.
//!
//! It offers operations of the service and calls of plugins. Over HTTP it answers only names of hosts that it was
//! given, web pages of named origins, and, off loopback, clients with the token.

mod described;
mod done;
mod handler;
mod http;
mod plugins;
mod verbs;

use super::confirm::agreed;
use super::context::Context;
use super::exit::Exit;
use super::grant_args;
use clap::{Args, Subcommand};
use longhaul_api::operations::ProjectOperations as _;
use longhaul_api::projects::{AcceptMcp, DescribeMcp, McpTools};
use longhaul_core::fault;
use longhaul_core::grant::{DirectoryGrant, HostPattern};
use rmcp::service::ServiceExt as _;
use std::net::SocketAddr;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// Serve HTTP at this address, for example 127.0.0.1:8765. Default: standard input and output.
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// The secret that clients send as `authorization: Bearer ...`, by its name in `longhaul secrets`. Required off
    /// loopback.
    #[arg(long, value_name = "SECRET", requires = "http")]
    token: Option<String>,
    /// A further host name by which clients may reach the server.
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_name: Vec<String>,
    /// The origin of a web page that may send requests, for example `https://app.example.com:443`. Default: none.
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// A directory for tools that ask for one, for example `./data:/work:ro`.
    #[arg(long = "dir", value_name = "HOST:GUEST[:ro]", value_parser = grant_args::directory)]
    directories: Vec<DirectoryGrant>,
    /// A host for tools that ask for one, for example `https://api.example.com`.
    #[arg(long, value_name = "PATTERN", value_parser = grant_args::host)]
    allow_host: Vec<HostPattern>,
}

#[derive(Subcommand, Debug)]
enum McpCommand {
    /// Approve the tools of a server of `[mcp.NAME]` as it describes them now. Without a digest the server is started,
    /// and its descriptions are shown first.
    Accept(AcceptArgs),
}

#[derive(Args, Debug)]
struct AcceptArgs {
    /// Name of the server.
    server: String,
    /// The digest of the present descriptions, as the refusal printed it.
    digest: Option<String>,
    /// Show the whole schemas of the tools.
    #[arg(long, conflicts_with = "digest")]
    all: bool,
    /// Approve without a question.
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
pub async fn run(context: &Context, args: McpArgs) -> fault::Result<Exit> {
    if let Some(McpCommand::Accept(accepted)) = args.command {
        return accept(context, accepted).await;
    }
    let handler = handler::McpHandler::new(
        context,
        plugins::CommandGrants { directories: args.directories, hosts: args.allow_host },
    )?;
    match args.http {
        Some(address) => {
            let client = http::HttpAccess::new(address, args.token, args.allow_name, args.allow_origin, &context.home)?;
            http::serve(handler.clone(), client).await?;
        }
        None => {
            let serving = handler.clone().serve((tokio::io::stdin(), tokio::io::stdout())).await?;
            serving.waiting().await?;
        }
    }
    handler.close().await;
    Ok(Exit::Done)
}

async fn accept(context: &Context, args: AcceptArgs) -> fault::Result<Exit> {
    let directory = context.project.clone();
    context.client.keep();
    let digest = match &args.digest {
        Some(digest) => digest.clone(),
        None => looked_at(context, &args).await?,
    };
    let server = args.server;
    context.accept_mcp(AcceptMcp { directory, server: server.clone(), digest }).await?;
    outln!("accepted what {server} says now");
    Ok(Exit::Done)
}

/// Shows how a server describes its tools, and returns the digest once a person approves of them.
async fn looked_at(context: &Context, AcceptArgs { server, all, yes, .. }: &AcceptArgs) -> fault::Result<String> {
    let request = DescribeMcp { directory: context.project.clone(), server: server.clone() };
    let McpTools { digest, tools } = context.describe_mcp(request).await?;
    outtext!(described::described(server, &tools, &digest, *all));
    if *yes {
        return Ok(digest);
    }
    let refusal = format!("the tools of {server} were not approved");
    agreed(context, "Approve of these tools?", &refusal, &format!("run: longhaul mcp accept {server} {digest}"))?;
    Ok(digest)
}
