//! The prompt of `run`, `resume` and `attach`: asks the person at this terminal for the answers that a run waits for.
//!
//! Input that was typed before the question appeared is discarded: it cannot be an answer to it. The end of input,
//! Ctrl-C and an empty line are no answers; the run stays as it is and can be answered from anywhere.

use super::approvals;
use super::context::Context;
use longhaul_api::approvals::{AnswerApproval, ApprovalOutcome, ListApprovals, ShowApproval};
use longhaul_api::operations::ApprovalOperations as _;
use longhaul_api::runs::RunRef;
use longhaul_approval::{Approval, ApprovalKind, ApprovalStatus, banner, visible};
use longhaul_client::Client;
use longhaul_core::RunId;
use longhaul_core::fault;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use std::io::{IsTerminal, Write as _};
use std::time::Duration;
use tokio::sync::mpsc;

/// Interval between two looks for an answer from elsewhere.
const LOOK: Duration = Duration::from_millis(500);

/// The outcome of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PromptOutcome {
    /// The run waits for something else.
    Nothing,
    /// All open questions have answers.
    Answered,
    /// The terminal has no person, or they closed their input.
    Left,
}

/// The person at this terminal.
#[derive(Default)]
pub struct Person {
    lines: Option<mpsc::UnboundedReceiver<String>>,
    /// The question that is open while the run goes on.
    asked: Option<Approval>,
    /// True when they closed their input.
    left: bool,
}

/// The reaction of the person.
enum PersonInput {
    Line(String),
    Left,
    AnsweredElsewhere,
}

impl Person {
    /// Shows the open questions of a waiting run, and asks each until all have answers.
    pub async fn ask(&mut self, context: &Context, client: &Client, run: &RunId) -> fault::Result<PromptOutcome> {
        if !self.is_here(context) {
            let open = open(client, run).await?;
            open.iter().filter(|_| !context.json).for_each(|approval| outtext!(banner(approval)));
            return Ok(if open.is_empty() { PromptOutcome::Nothing } else { PromptOutcome::Left });
        }
        let was_asked = self.asked.take().map(|approval| approval.id);
        let mut asked = PromptOutcome::Nothing;
        // Read again after each answer, since an answer by rule may answer others.
        while let Some(approval) = open(client, run).await?.into_iter().next() {
            if was_asked.as_ref() != Some(&approval.id) {
                outtext!(banner(&approval));
            }
            if !self.ask_one(client, &approval).await? {
                return Ok(PromptOutcome::Left);
            }
            asked = PromptOutcome::Answered;
        }
        Ok(asked)
    }

    /// Shows an open question of a run that goes on. Returns whether there is one.
    pub async fn begin(&mut self, context: &Context, client: &Client, run: &RunId) -> fault::Result<bool> {
        if self.asked.is_none() && self.is_here(context) {
            self.asked = open(client, run).await?.into_iter().next();
            if let Some(approval) = &self.asked {
                outtext!(banner(approval));
                self.forget_what_was_typed();
                self.prompt();
            }
        }
        Ok(self.asked.is_some())
    }

    /// True when a question of [`Person::begin`] is open.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Shows the open question again, below text that was printed since.
    pub fn prompt(&self) {
        if let Some(approval) = &self.asked {
            show_prompt(approval);
        }
    }

    /// The next line of input; none when the person closes it.
    pub async fn line(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(listen).recv().await
    }

    /// Takes a line as the answer to the open question.
    pub async fn take(&mut self, client: &Client, line: Option<String>) -> fault::Result<()> {
        let Some(approval) = self.asked.take() else { return Ok(()) };
        let Some(line) = line else {
            self.left = true;
            outln!("\nno answer; the rest of the run goes on");
            return Ok(());
        };
        if !answered(client, &approval, line).await?
            && shown(client, &approval.id).await?.standing == ApprovalStatus::Open
        {
            self.asked = Some(approval);
            self.prompt();
        }
        Ok(())
    }

    /// Records that the person closed their input.
    pub fn leave(&mut self) {
        self.left = true;
    }

    /// True when a person can type at this terminal.
    pub fn is_here(&self, context: &Context) -> bool {
        !context.json && !self.left && std::io::stdin().is_terminal() && is_in_front()
    }

    /// Asks one question. Returns whether it has an answer now.
    async fn ask_one(&mut self, client: &Client, approval: &Approval) -> fault::Result<bool> {
        self.forget_what_was_typed();
        loop {
            show_prompt(approval);
            let line = match self.hears(client, approval).await? {
                PersonInput::Line(line) => line,
                PersonInput::AnsweredElsewhere => return Ok(true),
                PersonInput::Left => {
                    outln!("\nno answer; the run waits");
                    return Ok(false);
                }
            };
            if answered(client, approval, line).await? {
                return Ok(true);
            }
        }
    }

    async fn hears(&mut self, client: &Client, approval: &Approval) -> fault::Result<PersonInput> {
        let lines = self.lines.get_or_insert_with(listen);
        loop {
            tokio::select! {
                line = lines.recv() => return Ok(line.map_or(PersonInput::Left, PersonInput::Line)),
                _ = tokio::signal::ctrl_c() => return Ok(PersonInput::Left),
                () = tokio::time::sleep(LOOK) => {
                    let now = shown(client, &approval.id).await?;
                    if now.standing != ApprovalStatus::Open {
                        outln!("\nanswered in another terminal: {}", visible(&now.words()));
                        return Ok(PersonInput::AnsweredElsewhere);
                    }
                }
            }
        }
    }

    fn forget_what_was_typed(&mut self) {
        // Input that is no terminal has no queue to be cleared.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        while self.lines.as_mut().is_some_and(|lines| lines.try_recv().is_ok()) {}
    }
}

/// True when this process may read the terminal. Reading the terminal of another job would stop this process, and with
/// it the owner of the data directory, so that nobody could answer from elsewhere.
fn is_in_front() -> bool {
    tcgetpgrp(std::io::stdin()).map_or(true, |front| front == getpgrp())
}

fn show_prompt(approval: &Approval) {
    let choices = match (approval.asks, approval.takes_rule()) {
        (ApprovalKind::Question, _) => "text",
        (ApprovalKind::Call | ApprovalKind::Change, true) => "y/n/a/text",
        (ApprovalKind::Call | ApprovalKind::Change, false) => "y/n/text",
    };
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{} [{choices}]? ", approval.id);
    let _ = out.flush();
}

/// Sends a line as the answer. Returns false, and prints the reason, if it was not accepted.
async fn answered(client: &Client, approval: &Approval, line: String) -> fault::Result<bool> {
    match client.answer_approval(AnswerApproval { id: approval.id.clone(), text: line }).await {
        Ok(ApprovalOutcome { approval, rule, .. }) => {
            approvals::tell(&approval, rule.as_ref());
            Ok(true)
        }
        Err(error) => {
            outln!("{error:#}");
            Ok(false)
        }
    }
}

/// Lines of standard input, read by a thread that is never joined: a read of a terminal cannot be cancelled.
fn listen() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        while matches!(std::io::stdin().read_line(&mut line), Ok(count) if count > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                break;
            }
        }
    });
    lines
}

async fn open(client: &Client, run: &RunId) -> fault::Result<Vec<Approval>> {
    let which = Some(RunRef::Named(run.to_string()));
    let mut found = client.approvals(ListApprovals { run: which, open: true }).await?.approvals;
    found.retain(|approval| approval.standing == ApprovalStatus::Open);
    Ok(found)
}

async fn shown(client: &Client, id: &str) -> fault::Result<Approval> {
    client.approval(ShowApproval { id: id.to_owned() }).await
}
