//! The artifacts of agents: inspection and changes by people.

use crate::desk::SchedulerService;
use crate::rows::{self, ScheduleTransaction};
use longhaul_agents::{AgentError, ArtifactHead, NewArtifactVersion};
use longhaul_api::agents::AgentResponse;
use longhaul_core::Name;
use longhaul_core::fault::{self, bail};
use serde_json::Value;

impl SchedulerService {
    pub(super) fn artifact(&self, name: &Name, version: Option<u64>) -> fault::Result<AgentResponse> {
        self.record(name)?;
        let Some(version) = version else { return Ok(said(rows::head(&*self.store, name)?)) };
        let found = rows::artifacts(&*self.store, name)?.into_iter().find(|artifact| artifact.version == version);
        let artifact = found.ok_or_else(|| AgentError::NoVersion { name: name.to_string(), version })?;
        Ok(AgentResponse::Artifact { version: artifact.version, artifact: Some(Box::new(artifact)) })
    }

    pub(super) async fn set_artifact(
        &self,
        name: &Name,
        state: Value,
        summary: Option<String>,
        version: Option<u64>,
    ) -> fault::Result<AgentResponse> {
        self.change(name, version, |head, at_ms| {
            let old = head.artifact.as_ref().map(|artifact| artifact.summary.clone());
            let summary = summary.or(old).unwrap_or_default();
            let made_by = "a person".to_owned();
            head.with(name, NewArtifactVersion { state, summary, run_count: head.run_count(), at_ms, made_by })
        })
        .await
    }

    pub(super) async fn clear_artifact(&self, name: &Name, version: Option<u64>) -> fault::Result<AgentResponse> {
        self.change(name, version, |head, _| Ok(head.cleared())).await
    }

    pub(super) fn artifact_history(&self, name: &Name) -> fault::Result<AgentResponse> {
        self.record(name)?;
        Ok(AgentResponse::Artifacts { artifacts: rows::artifacts(&*self.store, name)? })
    }

    async fn change(
        &self,
        name: &Name,
        version: Option<u64>,
        next: impl FnOnce(&ArtifactHead, u64) -> Result<ArtifactHead, AgentError>,
    ) -> fault::Result<AgentResponse> {
        let turn = self.turn().await?;
        self.record(name)?;
        let head = match rows::head(&*self.store, name) {
            Ok(head) => head,
            // A person may replace an unreadable artifact, but must not count as having seen it.
            Err(error) if version.is_some() => bail!("{error:#}; leave the version out for that"),
            Err(_) => ArtifactHead { version: rows::last_version(&*self.store, name)?, artifact: None },
        };
        head.expect(name, version)?;
        let (head, now_ms) = (&head, self.clock.now_ms());
        let head = next(head, now_ms)?;
        let mut writing = ScheduleTransaction::new(&*self.store, now_ms);
        writing.head(name, &head)?;
        self.commit(writing.finish()?).await?;
        drop(turn);
        Ok(said(head))
    }
}

fn said(head: ArtifactHead) -> AgentResponse {
    AgentResponse::Artifact { version: head.version, artifact: head.artifact.map(Box::new) }
}
