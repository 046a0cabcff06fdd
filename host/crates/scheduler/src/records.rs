//! Agents: created, changed, enabled and disabled, removed.

use crate::rows::{self, ScheduleTransaction};
use crate::service::{SchedulerService, StateGuard, lock};
use base64::Engine as _;
use longhaul_agents::{AgentCode, AgentError, AgentPatch, AgentRecord, NewAgent, WASM_BYTES_MAX};
use longhaul_api::agents::{
    ActivateAgent, AgentList, AgentSummary, AgentView, ListAgents, PAGE_MAX, RegisterAgent, UpdateAgent,
};
use longhaul_core::fault::{self, Context as _, bail};
use longhaul_core::{Digest, Name};
use longhaul_schedule::{Schedule, SchedulerInput, TaskStatus, Trigger};

/// Agents of one data directory.
const AGENTS_MAX: usize = 10_000;

impl SchedulerService {
    /// Registers an agent.
    ///
    /// # Errors
    /// The fault of the agent, or a failure of the store.
    pub async fn register(&self, RegisterAgent { agent, wasm }: RegisterAgent) -> fault::Result<AgentView> {
        let bytes = self.program(Some(&agent.code), wasm)?;
        let record = AgentRecord::made(agent, self.clock.now_ms())?;
        let name = record.agent.name.clone();
        let mut turn = self.turn().await?;
        if rows::agent(&*self.store, &name)?.is_some() {
            return Err(AgentError::Exists { name: name.to_string() }.into());
        }
        if rows::agents(&*self.store)?.len() >= AGENTS_MAX {
            return Err(AgentError::TooMany { count: AGENTS_MAX }.into());
        }
        self.keep_record(&mut turn, &record, bytes).await?;
        self.view(&turn, record)
    }

    /// Changes an agent.
    ///
    /// # Errors
    /// The fault of the change, or a failure of the store.
    pub async fn update(&self, request: UpdateAgent) -> fault::Result<AgentView> {
        let UpdateAgent { name, patch, wasm, version } = request;
        let bytes = self.program(patch.code.as_ref(), wasm)?;
        let mut turn = self.turn().await?;
        let record = self.record(&name)?.changed(patch, version, self.clock.now_ms())?;
        self.keep_record(&mut turn, &record, bytes).await?;
        self.view(&turn, record)
    }

    /// Switches an agent on or off.
    ///
    /// # Errors
    /// When there is no such agent, and when the store fails.
    pub async fn activate(&self, ActivateAgent { name, active }: ActivateAgent) -> fault::Result<AgentView> {
        let mut turn = self.turn().await?;
        let mut record = self.record(&name)?;
        if record.agent.active != active {
            let patch = AgentPatch { active: Some(active), ..AgentPatch::default() };
            record = record.changed(patch, None, self.clock.now_ms())?;
            self.keep_record(&mut turn, &record, None).await?;
        }
        self.view(&turn, record)
    }

    /// Stores a record and the resulting changes of its schedules, in one transaction.
    async fn keep_record(
        &self,
        turn: &mut StateGuard<'_>,
        record: &AgentRecord,
        wasm: Option<Vec<u8>>,
    ) -> fault::Result<()> {
        let mut writing = ScheduleTransaction::new(&*self.store, self.clock.now_ms());
        if let Some(bytes) = wasm {
            writing.blob(bytes);
        }
        writing.agent(record)?;
        let (name, active) = (record.agent.name.clone(), record.agent.active);
        let (state, actions) = match turn.state().inactive.contains(&name) == active {
            true => turn.next(SchedulerInput::Activate(name, active))?,
            false => (turn.state().clone(), Vec::new()),
        };
        turn.keep(state, &actions, writing).await
    }

    /// A page of agents by name.
    ///
    /// # Errors
    /// When the store fails.
    pub fn list(&self, ListAgents { active, limit, offset }: ListAgents) -> fault::Result<AgentList> {
        let is_meant = |record: &AgentRecord| active.is_none_or(|active| record.agent.active == active);
        let found: Vec<AgentRecord> = rows::agents(&*self.store)?.into_iter().filter(is_meant).collect();
        let total_count = found.len();
        let limit = limit.min(PAGE_MAX);
        let agents = found.into_iter().skip(offset).take(limit).map(summary).collect();
        Ok(AgentList { agents, total_count, limit, offset })
    }

    /// One agent.
    ///
    /// # Errors
    /// When there is no such agent, and when the store fails.
    pub async fn show(&self, name: &Name) -> fault::Result<AgentView> {
        let turn = self.turn().await?;
        self.view(&turn, self.record(name)?)
    }

    /// Removes an agent with its artifacts, and answers what it was.
    ///
    /// # Errors
    /// When there is no such agent, when it is in use, and when the store fails.
    pub async fn remove(&self, name: &Name) -> fault::Result<AgentView> {
        let mut turn = self.turn().await?;
        // An unreadable record can still be removed.
        let record = match rows::agent(&*self.store, name) {
            Ok(record) => record.ok_or_else(|| AgentError::Unknown { name: name.to_string() })?,
            Err(_) => AgentRecord {
                agent: NewAgent::new(name.clone(), AgentCode::Python { source: String::new() }),
                version: 0,
                created_ms: 0,
                updated_ms: 0,
            },
        };
        let schedules = schedules_of(&turn, name);
        if !schedules.is_empty() {
            let schedules = schedules.iter().map(ToString::to_string).collect();
            return Err(AgentError::Used { name: name.to_string(), schedules }.into());
        }
        let open = turn.state().tasks.values().find(|task| task.agent == *name && task.status != TaskStatus::Completed);
        let by_hand = lock(&self.by_hand).get(name).cloned();
        if let Some(task) = by_hand.or_else(|| open.map(|task| task.id.clone())) {
            return Err(AgentError::Busy { name: name.to_string(), task: task.to_string() }.into());
        }
        let said = self.view(&turn, record)?;
        let mut writing = ScheduleTransaction::new(&*self.store, self.clock.now_ms());
        writing.remove_agent(name)?;
        let (state, actions) = turn.next(SchedulerInput::Activate(name.clone(), true))?;
        turn.keep(state, &actions, writing).await?;
        Ok(said)
    }

    pub(super) fn record(&self, name: &Name) -> fault::Result<AgentRecord> {
        let found = rows::agent(&*self.store, name)?;
        Ok(found.ok_or_else(|| AgentError::Unknown { name: name.to_string() })?)
    }

    fn view(&self, turn: &StateGuard<'_>, record: AgentRecord) -> fault::Result<AgentView> {
        let name = &record.agent.name;
        let (run_count, artifact_version, artifact_error) = match rows::head(&*self.store, name) {
            Ok(head) => (head.run_count(), head.version, None),
            Err(error) => (0, rows::last_version(&*self.store, name)?, Some(format!("{error:#}"))),
        };
        let schedules = schedules_of(turn, name);
        Ok(AgentView { record, run_count, artifact_version, artifact_error, schedules })
    }

    /// The bytes of a program, which must match the digest in the agent's code; without bytes, the store must have
    /// them.
    fn program(&self, code: Option<&AgentCode>, wasm: Option<String>) -> fault::Result<Option<Vec<u8>>> {
        let digest = match code {
            Some(AgentCode::Wasm { digest }) => digest,
            _ if wasm.is_some() => bail!("a program is given, and the code is not `wasm`; leave one of the two out"),
            _ => return Ok(None),
        };
        let Some(text) = wasm else {
            self.store
                .blob(digest)?
                .or_invalid(|| format!("the store has no program {}; give its bytes as well", digest.short()))?;
            return Ok(None);
        };
        let most = WASM_BYTES_MAX / 3 * 4 + 8;
        if text.len() > most {
            bail!("the program has more than {WASM_BYTES_MAX} bytes; make it smaller");
        }
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(text).or_invalid(|| "the program is not base64")?;
        if bytes.len() > WASM_BYTES_MAX {
            bail!("the program has {} bytes, and at most {WASM_BYTES_MAX} are kept; make it smaller", bytes.len());
        }
        if Digest::of(&bytes) != *digest {
            bail!("the program has the digest {}, and the code names {digest}", Digest::of(&bytes));
        }
        Ok(Some(bytes))
    }
}

/// Schedules that run an agent, or that wait for it.
fn schedules_of(turn: &StateGuard<'_>, agent: &Name) -> Vec<Name> {
    let is_meant = |schedule: &&Schedule| {
        let waits = matches!(&schedule.trigger, Trigger::After { agent: of, .. } if of == agent.as_str());
        schedule.agent == *agent || waits
    };
    let schedules = turn.state().schedules.values().map(|entry| &entry.schedule);
    schedules.filter(is_meant).map(|schedule| schedule.name.clone()).collect()
}

fn summary(record: AgentRecord) -> AgentSummary {
    let AgentRecord { agent, version, created_ms, updated_ms } = record;
    let kind = agent.code.kind().to_owned();
    AgentSummary {
        name: agent.name,
        description: agent.description,
        kind,
        active: agent.active,
        version,
        created_ms,
        updated_ms,
    }
}
