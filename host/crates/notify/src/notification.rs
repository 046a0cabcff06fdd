//! A notification about a run or a task, as it is stored and sent. Refuses to know its recipients and their channels.

use longhaul_config::notify::NotificationEvent;
use longhaul_core::{Digest, Name, RunId};
use longhaul_schedule::TaskId;
use serde::{Deserialize, Serialize};

/// A notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// Its id, the same for every attempt.
    pub id: String,
    /// The event.
    #[serde(rename = "occasion")]
    pub notification_event: NotificationEvent,
    /// Its subject. The subject's fields stand among the others.
    #[serde(flatten)]
    pub about: NotificationSubject,
    /// The time of the event, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The command for the person to type.
    pub command: String,
    /// The question, or how the run ended; only with `texts = true` in `[notify]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Notifications of the same project, or of the data directory, that the hourly limit suppressed in the hour
    /// before.
    #[serde(default)]
    pub suppressed: u32,
}

/// The subject of a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NotificationSubject {
    /// An event of a run.
    Run {
        /// The project.
        project: String,
        /// The run.
        run: RunId,
        /// The number of the event.
        event: u64,
    },
    /// The end of a task of a schedule.
    Task {
        /// The task.
        task: TaskId,
        /// The agent of the task.
        agent: Name,
        /// The schedule.
        schedule: Name,
        /// The number of attempts.
        attempts: u64,
        /// The limit that stopped the last attempt, if one did, such as `timeout_ms`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
    },
}

impl NotificationSubject {
    /// The name of the run or the task.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Run { run, .. } => run.as_str(),
            Self::Task { task, .. } => task.as_str(),
        }
    }

    /// Distinguishes events of one subject: a failed task may be retried by hand, and fail again.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Run { event, .. } => *event,
            Self::Task { attempts, .. } => *attempts,
        }
    }

    /// The project whose notifications share a limit with this one; none: the data directory.
    pub(super) fn counted_with(&self) -> Option<&str> {
        match self {
            Self::Run { project, .. } => Some(project),
            Self::Task { .. } => None,
        }
    }

    pub(super) fn notification_id(&self) -> String {
        let digest = Digest::of_parts(&[self.name().as_bytes(), &self.number().to_be_bytes()]).to_string();
        format!("n-{}", &digest[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, about: &NotificationSubject) {
        let notification: Notification = serde_json::from_str(json).expect("a notification");
        assert_eq!(notification.about, *about);
        assert_eq!(serde_json::to_string(&notification).expect("JSON"), json);
    }

    #[test]
    fn a_notification_about_a_run_is_as_it_always_was_and_one_about_a_task_names_that() {
        let run = NotificationSubject::Run { project: "kept".into(), run: RunId::from_text("r-1"), event: 7 };
        check(
            r#"{"id":"n-0","occasion":"parks","project":"kept","run":"r-1","event":7,"at_ms":5,"command":"c","text":"t","suppressed":2}"#,
            &run,
        );
        let task = |limit: Option<&str>| NotificationSubject::Task {
            task: TaskId::from_text("t-1"),
            agent: "a".parse().expect("a name"),
            schedule: "s".parse().expect("a name"),
            attempts: 4,
            limit: limit.map(str::to_owned),
        };
        check(
            r#"{"id":"n-0","occasion":"fails","task":"t-1","agent":"a","schedule":"s","attempts":4,"at_ms":5,"command":"c","suppressed":0}"#,
            &task(None),
        );
        check(
            r#"{"id":"n-0","occasion":"fails","task":"t-1","agent":"a","schedule":"s","attempts":4,"limit":"timeout_ms","at_ms":5,"command":"c","suppressed":0}"#,
            &task(Some("timeout_ms")),
        );
    }

    #[test]
    fn notifications_of_a_project_and_of_the_data_directory_are_counted_apart() {
        let run = |project: &str| NotificationSubject::Run {
            project: project.into(),
            run: RunId::from_text("r-1"),
            event: 1,
        };
        let task = |id: &str| NotificationSubject::Task {
            task: TaskId::from_text(id),
            agent: "a".parse().expect("a name"),
            schedule: "s".parse().expect("a name"),
            attempts: 1,
            limit: None,
        };
        assert_eq!(task("t-1").counted_with(), task("t-2").counted_with());
        assert_ne!(task("t-1").counted_with(), run("").counted_with());
        assert_ne!(run("a").counted_with(), run("b").counted_with());
    }
}
