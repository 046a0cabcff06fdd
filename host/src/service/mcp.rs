//! What a person accepts of an MCP server.

use super::{Answer, Service};
use crate::config::Config;
use anyhow::bail;
use longhaul_core::Digest;
use std::path::Path;

impl Service {
    pub(super) async fn accept_mcp(&self, directory: &Path, server: &str, digest: &str) -> anyhow::Result<Answer> {
        let config = Config::read(directory)?;
        if !config.mcp.contains_key(server) {
            bail!("there is no [mcp.{server}] in longhaul.toml");
        }
        if digest.parse::<Digest>().is_err() {
            bail!("`{}` is no digest; take the one that the refusal names", longhaul_core::text::truncate(digest, 80));
        }
        let (store, project) = (&*self.world.store, &config.project.name);
        longhaul_mcp::accept(store, project, server, digest).await?;
        Ok(Answer::Accepted { digest: digest.to_owned() })
    }
}
