//! The arguments of `longhaul serve`, and the settings of the server with them.

use clap::Args;
use longhaul_config::server::Settings;
use longhaul_core::fault;
use longhaul_home::Home;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Where it listens. Default: 127.0.0.1:7717, or what server.toml in the data directory says.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Let everybody of this machine in without a token. Only on loopback.
    #[arg(long)]
    no_token: bool,
    /// Serve the web page from this directory, for whoever works on it.
    #[arg(long, value_name = "DIR")]
    pub(super) page: Option<PathBuf>,
}

impl ServeArgs {
    /// Those of the file, and what the command line says above it.
    pub(super) fn settings(&self, home: &Home) -> fault::Result<Settings> {
        let mut settings = Settings::read(home.path())?;
        settings.listen = self.listen.unwrap_or(settings.listen);
        settings.tokens &= !self.no_token;
        settings.check()?;
        Ok(settings)
    }
}
