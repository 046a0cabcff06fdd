//! Opens the client of a data directory. The process becomes its owner, with all that an owner has, unless another
//! process is; then the client asks that one.

use crate::wiring;
use longhaul_client::Client;
use longhaul_core::fault;
use longhaul_home::Home;
use std::path::Path;

/// Opens the client for a command in a project.
pub async fn open(home: &Home, project: &Path) -> fault::Result<Client> {
    wiring::open(home, Some(project)).await
}
