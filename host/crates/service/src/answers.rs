//! Answers to what a run waits with. What is known of an effect is kept only once it is certain which question it
//! answers, in one transaction with the step that lets the work go on; until the work has used it, it can be taken
//! back.

use super::{RunRef, Service};
use longhaul_api::runs::AffectedRun;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::journal::{EffectQuestion, Resolution};
use longhaul_core::store::Batch;
use longhaul_core::text::truncate;
use longhaul_harness::Input;
use longhaul_records::record::{self, StoredRun};
use std::sync::Arc;

impl Service {
    /// Words for the run, or for a feature of it.
    pub(super) async fn answered(
        self: &Arc<Self>,
        which: &RunRef,
        feature: Option<String>,
        question: Option<String>,
        text: String,
    ) -> fault::Result<AffectedRun> {
        let stored = self.find(which)?;
        let run = &stored.record.run;
        if let Some(question) = question {
            bail!(Fault::invalid(format!(
                "question `{}` is about an effect; say --happened JSON, --did-not-happen or --skip",
                truncate(&question, 80)
            )));
        }
        if let Some(asked) = self.open_question(which, feature.as_deref())? {
            self.answer_known(asked, &text).await?;
            return Ok(AffectedRun { run: run.clone() });
        }
        self.refuse_approvals(run, feature.as_deref())?;
        let is_only_one = stored.state.waits().filter(|(_, wait)| wait.wait.is_for_a_person()).count() == 1;
        let is_meant = |one: &&EffectQuestion| match &feature {
            Some(feature) => one.invocation.feature() == Some(feature.as_str()),
            None => is_only_one,
        };
        if let Some(effect) = record::questions(&*self.host.store, run, &stored.state)?.iter().find(is_meant) {
            bail!(Fault::conflict(format!(
                "run {run} wants to know whether an effect happened, which words do not say; answer with: {}",
                effect.answer_with()
            )));
        }
        self.order(which, Input::Answered { feature, answer: text }).await
    }

    /// The commands that answer a run: one for each of its waits that is not about an effect.
    pub(super) fn commands(&self, stored: &StoredRun) -> fault::Result<Vec<String>> {
        let run = &stored.record.run;
        let effects = record::questions(&*self.host.store, run, &stored.state)?;
        let approvals = self.awaited(run)?;
        let waits =
            stored.state.lanes.iter().filter(|lane| lane.wait.as_ref().is_some_and(|one| one.wait.is_for_a_person()));
        let mut commands = Vec::new();
        for work in waits.map(|lane| &lane.work) {
            let key = work.key();
            if effects.iter().any(|one| one.invocation.action() == key) {
                continue;
            }
            let of_work: Vec<_> = approvals.iter().filter(|one| one.subject.invocation.action() == key).collect();
            let feature = work.feature().map(|feature| format!(" --feature {feature}")).unwrap_or_default();
            match of_work[..] {
                [] => commands.push(format!("longhaul answer {run}{feature} --text ANSWER")),
                _ => commands.extend(of_work.iter().map(|one| format!("longhaul approvals answer {} ANSWER", one.id))),
            }
        }
        Ok(commands)
    }

    /// Takes a person's knowledge of an effect.
    pub(super) async fn resolved(
        self: &Arc<Self>,
        which: &RunRef,
        feature: Option<&str>,
        question: Option<&str>,
        known: &Resolution,
    ) -> fault::Result<AffectedRun> {
        let (_alone, which) = self.alone(which).await?;
        let stored = self.ready(&which).await?;
        let store = &*self.host.store;
        let run = &stored.record.run;
        let open = record::questions(store, run, &stored.state)?;
        if open.is_empty() {
            bail!(Fault::conflict(format!("run {run} asks about no effect; answer in words")));
        }
        let asked = the_one(run, open, feature, question)?;
        let mut also = Batch::new();
        also.push(longhaul_journal::resolution(store, &asked.invocation, asked.entry, known)?);
        let key = asked.invocation.action().to_owned();
        self.hand_in(stored, Input::Resolved { key }, also).await
    }

    /// Takes that back.
    pub(super) async fn take_back(
        self: &Arc<Self>,
        which: &RunRef,
        feature: Option<&str>,
        question: Option<&str>,
    ) -> fault::Result<AffectedRun> {
        let (_alone, which) = self.alone(which).await?;
        let stored = self.ready(&which).await?;
        let store = &*self.host.store;
        let run = &stored.record.run;
        let mut unused = record::questions_answered(store, run, &stored.state)?;
        unused.retain(|one| longhaul_journal::unresolved(store, &one.invocation, one.entry).is_ok());
        if unused.is_empty() {
            bail!(Fault::conflict(format!(
                "run {run} has no answer that could be taken back: it was used, or there was none"
            )));
        }
        let asked = the_one(run, unused, feature, question)?;
        let mut also = Batch::new();
        also.push(longhaul_journal::unresolved(store, &asked.invocation, asked.entry)?);
        let key = asked.invocation.action().to_owned();
        let answer_with = asked.answer_with();
        self.hand_in(stored, Input::AnswerTakenBack { key, question: asked.text, answer_with }, also).await
    }
}

/// The question that is meant; one line that lists what could be meant, where that is not certain.
fn the_one(
    run: &RunId,
    mut of: Vec<EffectQuestion>,
    feature: Option<&str>,
    question: Option<&str>,
) -> fault::Result<EffectQuestion> {
    let line = |one: &EffectQuestion| {
        let of = one.invocation.feature().map(|feature| format!(" of {feature}")).unwrap_or_default();
        format!("{}{of}", one.id())
    };
    let listed = of.iter().map(line).collect::<Vec<_>>().join(", ");
    of.retain(|one| {
        question.is_none_or(|named| one.id() == named) && (feature.is_none() || one.invocation.feature() == feature)
    });
    match (of.pop(), of.is_empty()) {
        (Some(one), true) => Ok(one),
        (None, _) => bail!(Fault::conflict(format!(
            "run {run} has no such question; name one of these with --question: {listed}"
        ))),
        (Some(_), _) => bail!(Fault::conflict(format!(
            "which question of run {run} is meant is not certain, so nothing was kept; name it with --question: {listed}"
        ))),
    }
}
