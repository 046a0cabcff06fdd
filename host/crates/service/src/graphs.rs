//! Graphs of steps of code: requests go to the crate that keeps the graphs.

use super::{Service, ServiceOperations};
use longhaul_api::graph_output::{GraphOutputPage, ReadGraphOutput};
use longhaul_api::graphs::{
    AddSteps, CreateGraph, DiagnoseStep, DrawGraph, ExportGraph, GraphPage, ListGraphs, ListSteps, ModelChoice,
    OperateGraph, PatchStep, RemoveGraph, RunGraph, ShowGraph, ShowHistory,
};
use longhaul_api::operations::GraphOperations;
use longhaul_config::Config;
use longhaul_core::fault;
use longhaul_core::graph::{GraphAnswer, GraphSummary, GraphVersion, StepView};

#[async_trait::async_trait]
impl GraphOperations for ServiceOperations<'_> {
    async fn create_graph(&self, request: CreateGraph) -> fault::Result<GraphSummary> {
        self.0.graphs.create(request).await
    }

    async fn graphs(&self, ListGraphs {}: ListGraphs) -> fault::Result<Vec<GraphSummary>> {
        self.0.graphs.list()
    }

    async fn remove_graph(&self, RemoveGraph { name }: RemoveGraph) -> fault::Result<GraphSummary> {
        self.0.graphs.remove(&name).await
    }

    async fn graph_history(&self, ShowHistory { name }: ShowHistory) -> fault::Result<Vec<GraphVersion>> {
        self.0.graphs.history(&name)
    }

    async fn graph_steps(&self, ListSteps { name }: ListSteps) -> fault::Result<Vec<StepView>> {
        self.0.graphs.steps(&name)
    }

    async fn graph_page(&self, request: ShowGraph) -> fault::Result<GraphPage> {
        self.0.graphs.page(&request)
    }

    async fn export_graph(&self, ExportGraph { name, format }: ExportGraph) -> fault::Result<String> {
        self.0.graphs.export(&name, format)
    }

    async fn draw_graph(&self, DrawGraph { name, width }: DrawGraph) -> fault::Result<String> {
        self.0.graphs.draw(&name, width)
    }

    async fn operate_graph(&self, request: OperateGraph) -> fault::Result<GraphAnswer> {
        self.0.graphs.operate(request).await
    }

    async fn add_steps(&self, request: AddSteps) -> fault::Result<GraphAnswer> {
        self.0.graphs.add_steps(request).await
    }

    async fn run_graph(&self, request: RunGraph) -> fault::Result<GraphAnswer> {
        self.0.graphs.run(request).await
    }

    async fn graph_output(&self, request: ReadGraphOutput) -> fault::Result<GraphOutputPage> {
        self.0.graphs.output(&request).await
    }

    async fn diagnose_step(&self, request: DiagnoseStep) -> fault::Result<GraphAnswer> {
        self.0.expect_trust_of_model(request.model.as_ref())?;
        self.0.graphs.diagnose(request).await
    }

    async fn patch_step(&self, request: PatchStep) -> fault::Result<GraphAnswer> {
        self.0.expect_trust_of_model(request.model.as_ref())?;
        self.0.graphs.patch(request).await
    }
}

impl Service {
    /// A model of a project is asked under its keys and at its address, so its file must be trusted.
    fn expect_trust_of_model(&self, model: Option<&ModelChoice>) -> fault::Result<()> {
        match model {
            Some(model) => self.expect_trust(&model.directory, &Config::read(&model.directory)?),
            None => Ok(()),
        }
    }
}
