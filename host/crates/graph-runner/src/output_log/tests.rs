//! The log of the output of graphs: the lines that readers get, their order, and the bounds of the log.

use super::*;

/// A clock that stands.
struct At(u64);

impl Clock for At {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

fn logs(now_ms: u64) -> OutputLogs {
    OutputLogs::new(Arc::new(At(now_ms)))
}

async fn read(logs: &OutputLogs, after: u64, token: Option<&str>) -> GraphOutputPage {
    let token = token.map(str::to_owned);
    logs.read(&ReadGraphOutput { name: "g".to_owned(), after, token, wait_ms: 0 }).await
}

/// Each event in a few words.
fn told(page: &GraphOutputPage) -> Vec<String> {
    let one = |event: &GraphOutputEvent| match &event.content {
        GraphOutputContent::Began { place, steps } => format!("{} {place}/{steps}", event.step),
        GraphOutputContent::Printed { stream, text } => format!("{} {stream:?} {text:?}", event.step),
        GraphOutputContent::Ended { outcome, value, .. } => format!("{} {outcome:?} {value:?}", event.step),
    };
    page.events.iter().map(one).collect()
}

fn print(sink: &StepSink, text: &str) {
    sink.write(StandardStream::Output, text.as_bytes());
}

#[tokio::test]
async fn a_reader_goes_on_after_its_number_and_gets_whole_lines() {
    let logs = logs(7);
    assert_eq!(read(&logs, 0, None).await, GraphOutputPage { last: 7_000, ..GraphOutputPage::default() });
    let mut run = logs.begin("g", "a", 2);
    let sink = run.begin_step("load", 0);
    print(&sink, "one");
    print(&sink, "\ntwo");
    let page = read(&logs, 0, None).await;
    assert_eq!(told(&page), ["load 1/2", "load Output \"one\\n\""]);
    assert!(page.is_running);
    // A later line is another event, since a reader has the one before.
    print(&sink, "\nthr");
    sink.write(StandardStream::Error, b"w\xffrn\n");
    print(&sink, "ee");
    let rest = read(&logs, page.last, None).await;
    assert_eq!(told(&rest), ["load Output \"two\\n\"", "load Error \"w\u{fffd}rn\\n\""]);
    sink.end(StepOutcome::Done, 5, Some("3".to_owned()));
    drop(run);
    let end = read(&logs, rest.last, None).await;
    assert_eq!(told(&end), ["load Output \"three\"", "load Done Some(\"3\")"]);
    assert!(!end.is_running && read(&logs, end.last, None).await.events.is_empty());
    // Events are read from any number on, as often as wanted.
    assert_eq!(told(&read(&logs, page.last, None).await), [told(&rest), told(&end)].concat());
    let numbers: Vec<u64> = read(&logs, 0, None).await.events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (7_001..7_007).collect::<Vec<_>>());
}

#[tokio::test]
async fn lines_that_no_reader_has_share_an_event() {
    let logs = logs(0);
    let mut run = logs.begin("g", "a", 1);
    let sink = run.begin_step("s", 0);
    print(&sink, "1\n");
    print(&sink, "2\n");
    assert_eq!(told(&read(&logs, 0, None).await)[1..], ["s Output \"1\\n2\\n\""]);
    // A long text is several events, and a line without an end is not waited for too long.
    print(&sink, &"x".repeat(2 * TEXT_BYTES_MAX + 1));
    let page = read(&logs, 2, None).await;
    let lengths: Vec<usize> =
        page.events.iter().map(|event| LoggedEvent { token: "a".into(), event: event.clone() }.bytes()).collect();
    let around = EVENT_BYTES + 1;
    assert_eq!(lengths, [TEXT_BYTES_MAX + around, TEXT_BYTES_MAX + around, 1 + around]);
}

#[tokio::test]
async fn a_reader_of_one_request_gets_its_run_alone() {
    let logs = logs(0);
    for token in ["a", "b"] {
        let mut run = logs.begin("g", token, 1);
        run.begin_step(token, 0).end(StepOutcome::Done, 1, None);
    }
    assert_eq!(told(&read(&logs, 0, Some("b")).await), ["b 1/1", "b Done None"]);
    assert_eq!(told(&read(&logs, 0, Some("a")).await), ["a 1/1", "a Done None"]);
    assert_eq!(told(&read(&logs, 0, Some("c")).await), [""; 0]);
    assert_eq!(read(&logs, 0, None).await.events.len(), 4);
}

#[tokio::test]
async fn memory_is_bounded_and_a_reader_is_told_what_it_missed() {
    let logs = logs(0);
    let mut run = logs.begin("g", "a", 1);
    let sink = run.begin_step("s", 0);
    let line = format!("{}\n", "x".repeat(TEXT_BYTES_MAX - 1));
    let lines = 3 * LOG_BYTES_MAX / TEXT_BYTES_MAX;
    (0..lines).for_each(|_| print(&sink, &line));
    sink.end(StepOutcome::Failed, 1, None);
    assert!(logs.of("g").state().bytes <= LOG_BYTES_MAX);
    let first = read(&logs, 0, Some("a")).await;
    let kept = logs.of("g").state().events.len();
    assert_eq!(first.dropped, lines as u64 + 2 - kept as u64);
    assert_eq!(first.events[0].number, first.dropped + 1);
    // An answer is bounded, too, and the next one goes on where it ended.
    assert!(first.events.len() < kept, "{}", first.events.len());
    let (mut after, mut count) = (first.last, first.events.len());
    while count < kept {
        let page = read(&logs, after, Some("a")).await;
        assert_eq!((page.dropped, page.events[0].number), (0, after + 1));
        (after, count) = (page.last, count + page.events.len());
    }
    assert_eq!(after, lines as u64 + 2);
}

#[tokio::test]
async fn a_number_of_another_owner_hides_nothing() {
    let before = logs(7);
    before.begin("g", "a", 1).begin_step("s", 0).end(StepOutcome::Done, 1, None);
    let after = read(&before, 0, None).await.last;
    for later in [logs(8), logs(3)] {
        later.begin("g", "a", 1).begin_step("t", 0).end(StepOutcome::Done, 1, None);
        assert_eq!(told(&read(&later, after, Some("a")).await), ["t 1/1", "t Done None"]);
    }
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_by_the_next_event() {
    let logs = logs(0);
    let mut run = logs.begin("g", "a", 1);
    let request = ReadGraphOutput { name: "g".to_owned(), after: 0, token: None, wait_ms: u64::MAX };
    let (page, _) = tokio::join!(logs.read(&request), async { run.begin_step("s", 0) });
    assert_eq!(told(&page), ["s 1/1"]);
}

#[tokio::test]
async fn the_number_of_graphs_is_bounded_and_those_at_work_stay() {
    let logs = logs(0);
    let mut run = logs.begin("g", "a", 1);
    run.begin_step("s", 0);
    for at in 0..3 * LOGS_MAX {
        logs.begin(&at.to_string(), "b", 1).begin_step("s", 0);
    }
    assert_eq!(logs.open.lock().unwrap().by_graph.len(), LOGS_MAX);
    assert_eq!(told(&read(&logs, 0, None).await), ["s 1/1"]);
}

#[tokio::test]
async fn a_graph_with_the_name_of_a_removed_one_has_none_of_its_output() {
    let logs = logs(0);
    logs.begin("g", "a", 1).begin_step("old", 0).end(StepOutcome::Done, 1, None);
    let old = read(&logs, 0, None).await;
    logs.forget("g");
    logs.begin("g", "b", 1).begin_step("new", 0);
    let new = read(&logs, old.last, None).await;
    assert_eq!((told(&new), new.events[0].number), (vec!["new 1/1".to_owned()], old.last + 1));
}
