//! Graphs of steps of code: what is asked of them goes to the desk that keeps them.

use super::{Answer, Service};
use crate::graphs::{GraphAsk, Reply};

impl Service {
    pub(super) async fn graphs(&self, wanted: GraphAsk, token: &str) -> anyhow::Result<Answer> {
        Ok(match self.world.graphs.answer(wanted, token).await? {
            Reply::One(said) => Answer::Graph { said },
            Reply::Graphs(graphs) => Answer::Graphs { graphs },
            Reply::Versions(versions) => Answer::GraphVersions { versions },
        })
    }
}
