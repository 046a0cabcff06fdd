//! The service of this process, as its client asks it. Every call goes to [`Service`] as it is.

use longhaul_api::operations::{Operation, Transport};
use longhaul_api::seen::RunNotification;
#[cfg(feature = "server")]
use longhaul_client::Client;
use longhaul_client::LocalService;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_service::{Service, watch_here};
#[cfg(feature = "server")]
use std::any::Any;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// A service that this process made.
pub(crate) struct OwnService(pub(crate) Arc<Service>);

/// The service behind a client; none where another process is the owner.
#[cfg(feature = "server")]
pub(crate) fn of(client: &Client) -> Option<&Arc<Service>> {
    let Client::Own { service, .. } = client else { return None };
    let service: &dyn Any = &**service;
    service.downcast_ref::<OwnService>().map(|own| &own.0)
}

impl Transport for OwnService {
    async fn call<O: Operation>(&self, request: O) -> fault::Result<O::Response> {
        self.0.call(request).await
    }
}

#[async_trait::async_trait]
impl LocalService for OwnService {
    async fn watch(&self, run: &RunId, after: u64, sender: &Sender<RunNotification>) {
        watch_here(&self.0, run, after, sender).await;
    }

    fn active(&self) -> Vec<RunId> {
        self.0.active_here()
    }

    fn unfollowed(&self) -> Vec<RunId> {
        self.0.unfollowed()
    }

    async fn end_remembering(&self) {
        self.0.end_remembering().await;
    }

    async fn hand_over(&self) {
        self.0.hand_over().await;
    }

    async fn stop(&self) {
        self.0.stop().await;
    }
}
