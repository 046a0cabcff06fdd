//! The prompt of `run`, `resume` and `attach`: a run that waits for a person asks the one at this terminal.
//!
//! What was typed before a question was shown is thrown away: it cannot be meant for it. The end of input, Ctrl-C and
//! an empty line are no answers; the run stays as it is and can be answered from anywhere.

use super::approvals;
use super::context::Context;
use crate::door::Door;
use crate::service::{Answer, Request, Which};
use longhaul_approval::{Approval, Asks, Standing, banner, visible};
use longhaul_core::RunId;
use longhaul_core::fault::{self, bail};
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};
use std::io::{IsTerminal, Write as _};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often it is looked whether somebody answered elsewhere.
const LOOK: Duration = Duration::from_millis(500);

/// What came of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The run waits for something else.
    Nothing,
    /// All that was open has an answer.
    Answered,
    /// Nobody is here to answer, or they left.
    Left,
}

/// The person at this terminal.
#[derive(Default)]
pub struct Person {
    lines: Option<mpsc::UnboundedReceiver<String>>,
    /// What they are asked while the rest of the run goes on.
    asked: Option<Approval>,
    /// Whether they closed their input.
    left: bool,
}

/// What the person did.
enum Said {
    Line(String),
    Left,
    AnsweredElsewhere,
}

impl Person {
    /// Shows what is open in a run that waits, and asks about each until all have answers.
    pub async fn ask(&mut self, context: &Context, door: &Door, run: &RunId) -> fault::Result<Asked> {
        if !self.is_here(context) {
            let open = open(door, run).await?;
            open.iter().filter(|_| !context.json).for_each(|approval| outtext!(banner(approval)));
            return Ok(if open.is_empty() { Asked::Nothing } else { Asked::Left });
        }
        let was_asked = self.asked.take().map(|approval| approval.id);
        let mut asked = Asked::Nothing;
        // Looked at again each time: an answer by rule may answer others.
        while let Some(approval) = open(door, run).await?.into_iter().next() {
            if was_asked.as_ref() != Some(&approval.id) {
                outtext!(banner(&approval));
            }
            if !self.ask_one(door, &approval).await? {
                return Ok(Asked::Left);
            }
            asked = Asked::Answered;
        }
        Ok(asked)
    }

    /// Shows what is open in a run that goes on beside it. Whether there is something.
    pub async fn begin(&mut self, context: &Context, door: &Door, run: &RunId) -> fault::Result<bool> {
        if self.asked.is_none() && self.is_here(context) {
            self.asked = open(door, run).await?.into_iter().next();
            if let Some(approval) = &self.asked {
                outtext!(banner(approval));
                self.forget_what_was_typed();
                self.prompt();
            }
        }
        Ok(self.asked.is_some())
    }

    /// Whether they are asked something by [`Person::begin`].
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Shows again what they are asked, under what was printed meanwhile.
    pub fn prompt(&self) {
        if let Some(approval) = &self.asked {
            show_prompt(approval);
        }
    }

    /// Their next line; none when they close their input.
    pub async fn line(&mut self) -> Option<String> {
        self.lines.get_or_insert_with(listen).recv().await
    }

    /// Takes a line as the answer to what they are asked.
    pub async fn take(&mut self, door: &Door, line: Option<String>) -> fault::Result<()> {
        let Some(approval) = self.asked.take() else { return Ok(()) };
        let Some(line) = line else {
            self.left = true;
            outln!("\nno answer; the rest of the run goes on");
            return Ok(());
        };
        if !answered(door, &approval, line).await? && shown(door, &approval.id).await?.standing == Standing::Open {
            self.asked = Some(approval);
            self.prompt();
        }
        Ok(())
    }

    /// They closed their input.
    pub fn leave(&mut self) {
        self.left = true;
    }

    /// Whether there is somebody who can type.
    pub fn is_here(&self, context: &Context) -> bool {
        !context.json && !self.left && std::io::stdin().is_terminal() && is_in_front()
    }

    /// Whether it has an answer now.
    async fn ask_one(&mut self, door: &Door, approval: &Approval) -> fault::Result<bool> {
        self.forget_what_was_typed();
        loop {
            show_prompt(approval);
            let line = match self.hears(door, approval).await? {
                Said::Line(line) => line,
                Said::AnsweredElsewhere => return Ok(true),
                Said::Left => {
                    outln!("\nno answer; the run waits");
                    return Ok(false);
                }
            };
            if answered(door, approval, line).await? {
                return Ok(true);
            }
        }
    }

    async fn hears(&mut self, door: &Door, approval: &Approval) -> fault::Result<Said> {
        let lines = self.lines.get_or_insert_with(listen);
        loop {
            tokio::select! {
                line = lines.recv() => return Ok(line.map_or(Said::Left, Said::Line)),
                _ = tokio::signal::ctrl_c() => return Ok(Said::Left),
                () = tokio::time::sleep(LOOK) => {
                    let now = shown(door, &approval.id).await?;
                    if now.standing != Standing::Open {
                        outln!("\nanswered in another terminal: {}", visible(&now.words()));
                        return Ok(Said::AnsweredElsewhere);
                    }
                }
            }
        }
    }

    fn forget_what_was_typed(&mut self) {
        // What is no terminal has no queue to be cleared.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        while self.lines.as_mut().is_some_and(|lines| lines.try_recv().is_ok()) {}
    }
}

/// Whether the terminal is ours to read. One that is another job's would stop this process, and with it the owner of
/// the data directory, so that nobody could answer from elsewhere.
fn is_in_front() -> bool {
    tcgetpgrp(std::io::stdin()).map_or(true, |front| front == getpgrp())
}

fn show_prompt(approval: &Approval) {
    let choices = match (approval.asks, approval.takes_rule()) {
        (Asks::Question, _) => "text",
        (Asks::Call | Asks::Change, true) => "y/n/a/text",
        (Asks::Call | Asks::Change, false) => "y/n/text",
    };
    let mut out = std::io::stdout().lock();
    let _ = write!(out, "{} [{choices}]? ", approval.id);
    let _ = out.flush();
}

/// Hands a line in. False, and the reason shown, when it was not taken.
async fn answered(door: &Door, approval: &Approval, line: String) -> fault::Result<bool> {
    match door.ask(Request::AnswerApproval { id: approval.id.clone(), text: line }).await {
        Ok(Answer::Approved { approval, rule, .. }) => {
            approvals::tell(&approval, rule.as_ref());
            Ok(true)
        }
        Ok(_) => bail!("the service answered something else"),
        Err(error) => {
            outln!("{error:#}");
            Ok(false)
        }
    }
}

/// Lines of standard input, read by a thread that nobody waits for: a read of a terminal cannot be called off.
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

async fn open(door: &Door, run: &RunId) -> fault::Result<Vec<Approval>> {
    let which = Some(Which::Named(run.to_string()));
    let mut found = found(door, Request::Approvals { run: which }).await?;
    found.retain(|approval| approval.standing == Standing::Open);
    Ok(found)
}

async fn shown(door: &Door, id: &str) -> fault::Result<Approval> {
    match found(door, Request::Approval { id: id.to_owned() }).await?.pop() {
        Some(approval) => Ok(approval),
        None => bail!("approval `{id}` is gone"),
    }
}

async fn found(door: &Door, request: Request) -> fault::Result<Vec<Approval>> {
    match door.ask(request).await? {
        Answer::Approvals { approvals, .. } => Ok(approvals),
        _ => bail!("the service answered something else"),
    }
}
