//! Arguments of `longhaul serve`, and the settings of the server with them.

use clap::Args;
use longhaul_config::server::ServerSettings;
use longhaul_core::fault;
use longhaul_home::Home;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct ServeArgs {
    /// Address to listen at. Default: the address in server.toml of the data directory, or 127.0.0.1:7717.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Admit all users of this machine without a token. Only on loopback.
    #[arg(long)]
    no_token: bool,
    /// Serve the web page from this directory, for its development.
    #[arg(long, value_name = "DIR")]
    pub(super) page: Option<PathBuf>,
}

impl ServeArgs {
    /// The settings of the file, overridden by the arguments.
    pub(super) fn settings(&self, home: &Home) -> fault::Result<ServerSettings> {
        let mut settings = ServerSettings::read(home.path())?;
        settings.listen = self.listen.unwrap_or(settings.listen);
        settings.tokens &= !self.no_token;
        settings.check()?;
        Ok(settings)
    }
}
