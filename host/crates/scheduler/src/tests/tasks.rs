//! Tasks: their retries, the pages of their list, and how many of them are kept.

use super::*;
use crate::rows::{self, ScheduleTransaction};
use longhaul_schedule::{TaskFailure, TaskStatus};

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_is_tried_again_and_by_hand_once_more_and_stays_one_task() {
    let agent_executor = told(|_, before| match before {
        0..3 => ExecutionResult::failed(format!("no {before}"), true),
        3 => ExecutionResult::failed("never", false),
        _ => printed("well"),
    });
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.put(Schedule { retries_max: 3, ..each_minute("s", "a") }).await;
    bench.put(Schedule { enabled: false, ..each_minute("off", "a") }).await;
    for ms in [MINUTE, 2_000, 4_000] {
        bench.pass(ms).await;
    }
    let (tasks, total) = bench.tasks(Some("a"), Some(StatusFilter::Pending)).await;
    assert_eq!((tasks.len(), total, tasks[0].retry_count), (1, 1, 2));
    let error = bench.scheduler_service.retry(tasks[0].id.as_str()).await.expect_err("it waits");
    assert!(error.to_string().contains("is pending"), "{error:#}");
    bench.pass(8_000).await;
    let (tasks, total) = bench.tasks(Some("a"), Some(StatusFilter::Failed)).await;
    assert_eq!((tasks.len(), total, tasks[0].attempts.len()), (1, 1, 4));
    let tally = bench.tally("s").await;
    assert_eq!((tally.tasks, tally.failed, tally.retries), (1, 1, 3));
    let task = bench.task(&tasks[0].id).await;
    let errors = task.attempts.iter().filter_map(|one| one.result.as_ref()?.error_message.clone());
    assert_eq!(errors.collect::<Vec<_>>(), ["no 0", "no 1", "no 2", "never"]);
    assert_eq!(task.failure, Some(TaskFailure::NotRetryable));
    bench.scheduler_service.retry(tasks[0].id.as_str()).await.expect("a person may always retry");
    bench.pass(0).await;
    let task = bench.task(&tasks[0].id).await;
    assert_eq!((task.status, task.attempts.len(), task.failure), (TaskStatus::Completed, 5, None));

    // The same task may run again, and is counted once.
    let (by_hand, result) = bench.execute("nobody", None).await;
    assert!(!result.success);
    bench.add("nobody").await;
    let id = by_hand.expect("a task");
    bench.scheduler_service.retry(id.as_str()).await.expect("once more");
    bench.pass(0).await;
    let task = bench.task(&id).await;
    assert_eq!((task.status, task.attempts.len(), task.schedule), (TaskStatus::Completed, 2, None));
    assert_eq!(bench.tasks(Some("nobody"), None).await.1, 1);
}

#[tokio::test]
async fn tasks_are_listed_by_pages_with_what_is_open_in_front() {
    let agent_executor =
        told(|_, before| if before.is_multiple_of(2) { printed("well") } else { ExecutionResult::failed("no", false) });
    let mut bench = Bench::new(&agent_executor);
    bench.add("a").await;
    bench.add("b").await;
    bench.put(each_minute("s", "a")).await;
    for _ in 0..10 {
        bench.pass(MINUTE).await;
    }
    bench.execute("b", None).await;
    bench.clock.advance_ms(MINUTE);
    bench.scheduler_service.tick().await.expect("a tick");
    let page = async |offset, limit| {
        let request = ListTasks { agent: Some(name("a")), status: None, limit, offset };
        let TaskList { tasks, total_count, .. } = bench.scheduler_service.tasks(request).await.expect("an answer");
        assert_eq!(total_count, 11);
        tasks.iter().map(|task| task.fire_ms).collect::<Vec<u64>>()
    };
    let all = page(0, 100).await;
    assert!(all.len() == 11 && all.is_sorted_by(|a, b| a > b), "{all:?}");
    let pages = [page(0, 4).await, page(4, 4).await, page(8, 4).await, page(12, 4).await].concat();
    assert_eq!(pages, all);
    assert_eq!(bench.tasks(Some("a"), Some(StatusFilter::Completed)).await.1, 5);
    assert_eq!(bench.tasks(Some("a"), Some(StatusFilter::Failed)).await.1, 5);
    assert_eq!(bench.tasks(Some("a"), Some(StatusFilter::Running)).await.1, 1);
    assert_eq!(bench.tasks(None, None).await.1, 12);
}

#[tokio::test]
async fn only_the_newest_tasks_are_kept_and_the_counts_say_so() {
    let store = MemoryStore::new();
    let task = |number: u64| longhaul_schedule::ScheduledTask {
        id: TaskId::from_text(format!("t-{number}")),
        schedule: name("s"),
        agent: name("a"),
        fire_ms: number,
        due_ms: number,
        cause: longhaul_schedule::TaskCause::Time,
        status: if number.is_multiple_of(2) { TaskStatus::Completed } else { TaskStatus::Failed },
        attempts: Vec::new(),
        retries_max: 3,
        backoff: longhaul_schedule::RetryBackoff::default(),
        interruptions_max: 20,
        interruptions: 0,
        progress: None,
        waits_for: None,
        failure: None,
    };
    for first in [0_u64, 4, 8] {
        // Several in one transaction.
        let mut writing = ScheduleTransaction::new(&store, first + 100).keeping(5);
        for number in first..first + 4 {
            writing.result(&task(number), &ExecutionResult::default()).expect("kept");
            writing.ended_by_hand(task(number)).expect("kept");
        }
        store.commit(writing.finish().expect("whole")).await.expect("taken");
    }
    let rows = rows::ended_tasks(&store, Some(&name("a")), None, 100, 0).expect("read");
    let (numbers, counts) = (rows.iter().map(|row| row.task.fire_ms), rows::counts(&store, None).expect("read"));
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    assert_eq!((numbers.len() as u64, numbers.last()), (counts.of(None), Some(&11)));
    assert!(numbers.len() <= 8 && numbers[0] >= 4, "{numbers:?}");
    let left = |kind: &str| store.scan(Table::Schedules, &Key::of(kind), None, 1_000).expect("read").len();
    assert_eq!((left("ended"), left("result"), left("index")), (numbers.len(), numbers.len(), 2 * numbers.len()));
}
