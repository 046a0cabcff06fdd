//! Descriptions of MCP servers, which a person accepts.

use super::Service;
use longhaul_api::projects::{AcceptMcp, AcceptedMcp, DescribeMcp, McpTools};
use longhaul_config::Config;
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::text::truncate;
use longhaul_mcp::{Definition, McpConfig, McpServer};
use longhaul_security::audit::AuditEvent;
use longhaul_toolbox as toolbox;

impl Service {
    /// Starts a server, in a directory of its own in place of a run's tree, and tells what it says of its tools.
    pub(super) async fn describe_mcp(&self, request: DescribeMcp) -> fault::Result<McpTools> {
        let DescribeMcp { directory, server } = &request;
        let config = self.claimed_config(directory).await?;
        self.expect_trust(directory, &config)?;
        let table = table(&config, server)?.clone();
        let scratch = self.host.home.scratch();
        std::fs::create_dir_all(&scratch)?;
        let tree = tempfile::tempdir_in(scratch).context("the server needs a directory")?;
        let around =
            toolbox::mcp::surroundings(&self.host.tool_environment(), &config, server, directory, tree.path())?;
        let (digest, tools) = McpServer::new(server, table, around).described().await?;
        let redactor = self.host.secrets.redactor();
        let tools = tools.into_iter().map(|one| Definition {
            description: redactor.scrub(&one.description),
            schema: redactor.scrub(&one.schema),
            ..one
        });
        Ok(McpTools { digest, tools: tools.collect() })
    }

    pub(super) async fn accept_mcp(&self, request: AcceptMcp) -> fault::Result<AcceptedMcp> {
        let AcceptMcp { directory, server, digest } = request;
        let config = self.claimed_config(&directory).await?;
        let table = table(&config, &server)?;
        if digest.parse::<Digest>().is_err() {
            bail!("`{}` is no digest; take the one that the refusal names", truncate(&digest, 80));
        }
        if let Some(configured) = table.tools.as_ref().filter(|configured| **configured != digest) {
            bail!("[mcp.{server}] names the digest {configured} itself; write tools = \"{digest}\" there");
        }
        let (store, project) = (&*self.host.store, config.scope());
        longhaul_mcp::accept(store, project, &server, &digest).await?;
        self.host.audit.note(AuditEvent::McpAccepted { directory, server, digest: digest.clone() }).await?;
        Ok(AcceptedMcp { digest })
    }
}

fn table<'a>(config: &'a Config, server: &str) -> fault::Result<&'a McpConfig> {
    config.mcp.get(server).or_invalid(|| format!("there is no [mcp.{}] in longhaul.toml", truncate(server, 80)))
}
