//! The artifacts of agents: inspection and changes by people.

use crate::rows::{self, ScheduleTransaction};
use crate::service::SchedulerService;
use longhaul_agents::{AgentError, ArtifactHead, NewArtifactVersion};
use longhaul_api::agents::{ArtifactList, ClearArtifact, HandedArtifact, SetArtifact, ShowArtifact};
use longhaul_core::Name;
use longhaul_core::fault::{self, bail};

impl SchedulerService {
    /// The artifact of an agent.
    ///
    /// # Errors
    /// When there is no such agent or version, and when the store fails.
    pub fn artifact(&self, ShowArtifact { name, version }: ShowArtifact) -> fault::Result<HandedArtifact> {
        self.record(&name)?;
        let Some(version) = version else { return Ok(handed(rows::head(&*self.store, &name)?)) };
        let found = rows::artifacts(&*self.store, &name)?.into_iter().find(|artifact| artifact.version == version);
        let artifact = found.ok_or_else(|| AgentError::NoVersion { name: name.to_string(), version })?;
        Ok(HandedArtifact { version: artifact.version, artifact: Some(artifact), conflict_count: 0 })
    }

    /// Replaces the artifact of an agent.
    ///
    /// # Errors
    /// When it has another version, and as [`Self::artifact`].
    pub async fn set_artifact(&self, request: SetArtifact) -> fault::Result<HandedArtifact> {
        let SetArtifact { name, state, summary, version } = request;
        self.change(&name, version, |head, at_ms| {
            let old = head.artifact.as_ref().map(|artifact| artifact.summary.clone());
            let summary = summary.or(old).unwrap_or_default();
            let made_by = "a person".to_owned();
            head.with(&name, NewArtifactVersion { state, summary, run_count: head.run_count(), at_ms, made_by })
        })
        .await
    }

    /// Clears the artifact of an agent.
    ///
    /// # Errors
    /// As [`Self::set_artifact`].
    pub async fn clear_artifact(&self, request: ClearArtifact) -> fault::Result<HandedArtifact> {
        let ClearArtifact { name, version } = request;
        self.change(&name, version, |head, _| Ok(head.cleared())).await
    }

    /// The kept versions of the artifact of an agent, the newest first.
    ///
    /// # Errors
    /// As [`Self::artifact`].
    pub fn artifact_history(&self, name: &Name) -> fault::Result<ArtifactList> {
        self.record(name)?;
        Ok(ArtifactList { artifacts: rows::artifacts(&*self.store, name)? })
    }

    async fn change(
        &self,
        name: &Name,
        version: Option<u64>,
        next: impl FnOnce(&ArtifactHead, u64) -> Result<ArtifactHead, AgentError>,
    ) -> fault::Result<HandedArtifact> {
        let turn = self.turn().await?;
        self.record(name)?;
        let head = match rows::head(&*self.store, name) {
            Ok(head) => head,
            // A person may replace an unreadable artifact, but must not count as having seen it.
            Err(error) if version.is_some() => bail!("{error:#}; leave the version out for that"),
            Err(_) => {
                let version = rows::last_version(&*self.store, name)?;
                ArtifactHead { version, ..ArtifactHead::default() }
            }
        };
        head.expect(name, version)?;
        let (head, now_ms) = (&head, self.clock.now_ms());
        let head = next(head, now_ms)?;
        let mut writing = ScheduleTransaction::new(&*self.store, now_ms);
        writing.head(name, &head)?;
        self.commit(writing.finish()?).await?;
        drop(turn);
        Ok(handed(head))
    }
}

fn handed(head: ArtifactHead) -> HandedArtifact {
    HandedArtifact { version: head.version, artifact: head.artifact, conflict_count: head.conflict_count }
}
