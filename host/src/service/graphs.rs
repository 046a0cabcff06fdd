//! Graphs of steps of code: what is asked of them goes to the desk that keeps them.

use super::Service;
use crate::config::Config;
use longhaul_api::answer::Answer;
use longhaul_api::graphs::GraphRequest;
use longhaul_core::fault;
use longhaul_graph_runner::GraphResponse;

impl Service {
    pub(super) async fn graphs(&self, wanted: GraphRequest, token: &str) -> fault::Result<Answer> {
        if let GraphRequest::Diagnose { model: Some(model), .. } | GraphRequest::Patch { model: Some(model), .. } =
            &wanted
        {
            // A model of a project is asked, under its keys and at its address.
            self.expect_trust(&model.directory, &Config::read(&model.directory)?)?;
        }
        Ok(match self.graphs.answer(wanted, token).await? {
            GraphResponse::One(said) => Answer::Graph { said },
            GraphResponse::Graphs(graphs) => Answer::Graphs { graphs },
            GraphResponse::Versions(versions) => Answer::GraphVersions { versions },
        })
    }
}
