//! Makes a data directory of a backup. The store is opened here, since the directory has no owner to ask yet.

use crate::backup::{self, RestoreOptions, RestoreReport};
use crate::wiring;
use longhaul_core::fault;
use longhaul_home::Home;
use longhaul_security::signing::AcceptedRisks;
use std::path::PathBuf;

/// Unpacks and reads the whole backup, on a thread that may block.
pub async fn restore(
    file: PathBuf,
    home: Home,
    accepts: AcceptedRisks,
    keeps: RestoreOptions,
) -> fault::Result<RestoreReport> {
    tokio::task::spawn_blocking(move || backup::restore(&file, &home, &accepts, keeps, wiring::prepare_store)).await?
}
