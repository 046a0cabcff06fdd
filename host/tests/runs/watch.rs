//! The stream of a run: what others see of it while it works, afterwards, and across kills.

use crate::common::lab::{Lab, Ran};
use crate::common::terminal::Terminal;
use crate::common::{DOER_CONFIG, THREE_FEATURES, answer_if_asked};
use expect_test::expect;
use futures_util::StreamExt as _;
use longhaul::Home;
use longhaul::client::Client;
use longhaul::events;
use longhaul::service::RunNotification;
use longhaul::wiring;
use longhaul_core::stream::{Content, LineKind, StreamLine, invocation};
use longhaul_core::{Event, RunId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::Duration;

/// Two features that pass; the second has helpers.
fn goal() -> &'static str {
    &THREE_FEATURES[..THREE_FEATURES.find("## Feature: the one without").expect("there")]
}

#[track_caller]
fn lines(ran: &Ran) -> Vec<StreamLine> {
    let read = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    ran.stdout.lines().map(read).collect()
}

/// The durable ones, with their numbers.
fn durable(lines: &[StreamLine]) -> Vec<(u64, &StreamLine)> {
    let number = |line: &StreamLine| if let Content::Event { number, .. } = line.content { Some(number) } else { None };
    lines.iter().filter_map(|line| number(line).map(|number| (number, line))).collect()
}

#[track_caller]
fn check_numbers(lines: &[StreamLine], from: u64) {
    let numbers: Vec<u64> = durable(lines).iter().map(|(number, _)| *number).collect();
    let expected: Vec<u64> = (from..).take(numbers.len()).collect();
    assert!(!numbers.is_empty() && numbers == expected, "{numbers:?}");
}

/// The events of an ended run, as a program that uses the library sees them, without waiting for real time.
fn in_process<T>(lab: &Lab, look: impl AsyncFnOnce(&Client, &RunId) -> T) -> T {
    let run = RunId::from_text(lab.runs().pop().expect("a run"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let home = Home::find(Some(lab.home())).expect("ours");
        let client = wiring::open(&home, Some(&lab.project())).await.expect("nobody else has it");
        let seen = look(&client, &run).await;
        client.close().await;
        seen
    })
}

/// Steps of components, by invocation without its run: their numbers and kinds.
fn steps(lines: &[StreamLine]) -> BTreeMap<String, Vec<(u32, LineKind)>> {
    let mut steps: BTreeMap<String, Vec<(u32, LineKind)>> = BTreeMap::new();
    for (_, line) in durable(lines) {
        let Content::Event { event, .. } = &line.content else { continue };
        let (Event::Thought { step, .. } | Event::Action { step, .. } | Event::Observation { step, .. }) = event else {
            continue;
        };
        let of = invocation(event).expect("a step is somebody's").as_str().split_once('/').expect("of a run").1;
        steps.entry(of.to_owned()).or_default().push((*step, line.kind()));
    }
    steps
}

#[test]
fn the_stream_has_every_event_in_order_and_what_agents_and_sub_agents_think_do_and_see() {
    let lab = Lab::new(DOER_CONFIG, goal());
    let live = lines(&lab.run(&["run", "--events"]).expect(0));
    check_numbers(&live, 1);
    let kinds: BTreeSet<String> = live.iter().map(|line| format!("{:?}", line.kind())).collect();
    let expected = [
        "ProjectCreated",
        "RunStarted",
        "Plan",
        "SessionStarting",
        "TaskStarted",
        "Thought",
        "Token",
        "Action",
        "Observation",
        "Delegation",
        "TaskDone",
        "Judged",
        "Commit",
        "SessionComplete",
        "Done",
        "End",
    ];
    let missing: Vec<_> = expected.iter().filter(|kind| !kinds.contains(**kind)).collect();
    assert!(missing.is_empty(), "{missing:?} are missing from {kinds:?}");
    assert_eq!(live.last().map(StreamLine::kind), Some(LineKind::End));
    let of_helper = |line: &&StreamLine| line.agent() == Some("agents.helper") && line.kind() == LineKind::Thought;
    assert!(live.iter().any(|line| of_helper(&line)), "what a sub-agent thinks is seen");
    let ended_well = |line: &&StreamLine| {
        let Content::Event { event: Event::InvocationEnded { invocation, ok: true, .. }, .. } = &line.content else {
            return false;
        };
        invocation.depth() == 1
    };
    assert_eq!(live.iter().filter(ended_well).count(), 3, "each helper is told to have ended");
    assert!(live.iter().filter(|line| line.kind() == LineKind::Action).all(|line| line.task().is_some()));
    for (of, steps) in steps(&live) {
        let numbers: Vec<u32> = steps.iter().map(|(step, _)| *step).collect();
        assert_eq!(numbers, (1..).take(numbers.len()).collect::<Vec<u32>>(), "{of}");
    }
    // A late reader gets the same events, from any number.
    let late = lines(&lab.run(&["attach", "--events"]).expect(0));
    assert_eq!(durable(&late), durable(&live));
    let rest = lines(&lab.run(&["attach", "--events", "--from", "7"]).expect(0));
    check_numbers(&rest, 7);
    assert_eq!(durable(&rest), durable(&live)[6..]);
    // And so does a program.
    let own: Vec<StreamLine> =
        in_process(&lab, async |client, run| events::stream(client, run, 7).await.expect("a stream").collect().await);
    assert_eq!(durable(&own), durable(&rest));
    assert_eq!(own.last().map(StreamLine::kind), Some(LineKind::End));
}

#[test]
fn a_run_that_is_killed_and_goes_on_says_each_step_once() {
    let reference = Lab::new(DOER_CONFIG, goal());
    let whole = steps(&lines(&reference.run(&["run", "--events"]).expect(0)));
    for point in ["tool.after-call:2", "store.after-commit:30", "delegate.end:1", "work.end:5"] {
        let lab = Lab::new(DOER_CONFIG, goal());
        let killed = lab.start_with(&["run", "--events"], &[("LONGHAUL_CRASH_AT", point)]).wait();
        assert!(killed.was_killed(), "{point}: {}", killed.said());
        for _ in 0..5 {
            if answer_if_asked(&lab).is_some_and(|status| status["status"] == "completed") {
                break;
            }
            lab.run(&["resume"]);
        }
        let after = lines(&lab.run(&["attach", "--events"]).expect(0));
        check_numbers(&after, 1);
        assert_eq!(steps(&after), whole, "{point}");
    }
}

#[test]
fn one_who_does_not_read_does_not_hold_the_run_up_and_misses_nothing() {
    let mut goal = "# Many\n".to_owned();
    for number in 0..30 {
        goal.push_str(&format!("\n## Feature: part {number}\n- id: s{number}\n- criterion: it is fine\n\nWrite it.\n"));
    }
    let config = r#"
[project]
name = "kept"

[agents.code]
plugin = "caller"
tools = ["files"]

[agents.code.settings]
calls = [{ tool = "files", function = "write", arguments = { path = "{id}.txt", content = "part {id}" } }]

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[evaluator]
plugin = "lenient"
"#;
    let lab = Lab::new(config, &goal);
    let mut command = lab.command(&["run", "--events"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("started");
    let stdout = child.stdout.take().expect("piped");
    // The pipe has no reader and holds 64 KiB, and the run writes more than that.
    let done = (0..1_200).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        lab.newest().is_some_and(|run| run["status"] == "completed")
    });
    assert!(done, "the run waits for its reader");
    let said: Vec<String> = BufReader::new(stdout).lines().map_while(Result::ok).collect();
    assert!(child.wait().expect("ours").success());
    let bytes: usize = said.iter().map(String::len).sum();
    assert!(bytes > 70_000, "it was never held up: {bytes} bytes");
    let lines: Vec<StreamLine> = said.iter().map(|line| serde_json::from_str(line).expect("a line")).collect();
    check_numbers(&lines, 1);
    assert_eq!(lines.last().map(StreamLine::kind), Some(LineKind::End));
    // A reader that never reads is disconnected, gets a notice of that, and can go on from there.
    let (first, rest) = in_process(&lab, async |client, run| {
        let mut seen = client.watch(run, 0).await.expect("watched");
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        let mut first = Vec::new();
        while let Some(one) = seen.recv().await {
            first.push(one);
        }
        let from = first.len() as u64;
        let rest: Vec<StreamLine> = events::stream(client, run, from).await.expect("a stream").collect().await;
        (first, rest)
    });
    assert!(matches!(first.last(), Some(RunNotification::Dropped)), "{:?}", first.last());
    assert!(first.len() > 1 && first.len() < durable(&lines).len());
    check_numbers(&rest, first.len() as u64);
    assert_eq!(durable(&rest).last(), durable(&lines).last());
}

/// A project whose agent writes a function as a model says.
const CODER: &str = r#"
[project]
name = "invoices"

[models.fake]
provider = "openai"
id = "fake"
base_url = "http://{server}/v1"
price_input_usd_per_million = 1.0
price_output_usd_per_million = 1.0

[agents.code]
plugin = "react"
models = ["fake"]
tools = ["files", "python"]
settings = { output_tokens_max = 500 }

[tools.files]
plugin = "files"
directories = [{ guest = "/work", host = "tree", access = "write" }]
confirm_effects = true

[tools.python]
plugin = "python"
directories = [{ guest = "/work", host = "tree", access = "read" }]

[checks]
sums = { argv = ["grep", "-q", "def total", "invoice.py"] }

[run.limits]
iterations_max = 2
"#;

/// The replies of the model: a round that ends too early, and one that passes.
fn replies() -> Vec<Value> {
    let act = |thought: &str, action: &str, args: Value| json!({ "thought": thought, "action": action, "args": args });
    let finish = |answer: &str| json!({ "action": "finish", "answer": answer, "confidence": 0.9 });
    vec![
        json!("I look around first.\n```json\n{\"action\": \"files.list\", \"args\": {}}\n```"),
        act("That is not there yet.", "files.read", json!({ "path": "invoice.py" })),
        // Its checks fail, so it is told to go on, and taken at its word at the third time.
        finish("I did nothing"),
        finish("I did nothing"),
        finish("I did nothing"),
        act(
            "Now I write it.",
            "files.write",
            json!({ "path": "invoice.py", "content": "def total(items):\n    return 0\n" }),
        ),
        act(
            "And mend the sum.\nIt was 0.",
            "files.edit",
            json!({ "path": "invoice.py", "old": "    return 0\n", "new": "    items = list(items)\n    return sum(items)\n" }),
        ),
        act("Do the tests pass?", "python.run", json!({ "source": "print('3 passed in 0.01s')" })),
        act("Outside of the tree.", "files.write", json!({ "path": "../x", "content": "x" })),
        act(
            "Once more.",
            "python.run",
            json!({ "source": "import sys\nprint('no such test', file=sys.stderr)\nsys.exit(2)" }),
        ),
        finish("total() sums the items"),
    ]
}

fn coder() -> Lab {
    let goal = "# Invoices\n\n## Feature: the total of an invoice\n- id: total\n- check: sums\n\nWrite total(items).\n";
    let lab = Lab::new(CODER, goal);
    lab.fake.says(replies());
    lab
}

/// Without what differs from run to run: names of runs and commits, and what the prompts of today cost.
fn masked(lab: &Lab, text: &str) -> String {
    let run = lab.runs().pop().expect("a run");
    let commit = lab.git(&["rev-parse", "longhaul/invoices"]);
    let spent = |line: &str| match line.rsplit_once('(') {
        // At a terminal more may stand behind it before the line ends.
        Some((line, spent)) if spent.contains(" tokens, $0.0") => {
            format!("{line}(SPENT){}\n", spent.split_once(')').map_or("", |(_, rest)| rest))
        }
        _ => format!("{line}\n"),
    };
    text.replace(&run, "RUN").replace(&commit[..10], "COMMIT").lines().map(spent).collect()
}

#[test]
fn what_a_person_sees_of_a_run_is_a_line_for_each_thing_that_is_done() {
    let lab = coder();
    // The log as well: what is no terminal gets no colours.
    let ran = lab.start_with(&["run"], &[("LONGHAUL_LOG", "debug")]).wait().expect(0);
    assert!(!ran.said().contains('\u{1b}'), "{}", ran.said());
    assert!(!ran.stdout.contains("{\""), "no JSON: {}", ran.stdout);
    let piped = masked(&lab, &ran.stdout);
    expect![[r#"
        run RUN of invoices, on branch longhaul/invoices
          plan: initializer
        1 feature
          total: the total of an invoice
          1 feature, as the goal writes it
        feature total
          work on total, round 1: react
            | I look around first.
            files.list  2 entries
            | That is not there yet.
            files.read invoice.py  failed: `invoice.py` does not exist
            I did nothing (SPENT)
          judge total, round 1: rubric-evaluator
            total does not pass
              sums: grep: invoice.py: No such file or directory
          work on total, round 2: react
            | Now I write it.
            files.write invoice.py +2 -0, new
            | And mend the sum.
            | It was 0.
            files.edit invoice.py +2 -1
            | Do the tests pass?
            python.run 1 line  3 passed
            | Outside of the tree.
            files.write ../x  wrong arguments: the path has `..`; paths stay inside the granted directory
            | Once more.
            python.run 3 lines  exit code 2: no such test
            total() sums the items (SPENT)
          judge total, round 2: rubric-evaluator
            total passes
          committed total as COMMIT: invoice.py
          PASS total: all checks passed
        completed: 1 of 1 features pass (SPENT)
        the work is on branch longhaul/invoices
          look at it:  longhaul diff RUN
          merge it:    longhaul merge RUN   (or: git merge longhaul/invoices)
    "#]]
    .assert_eq(&piped);

    let lab = coder();
    let (status, screen) = Terminal::start(&lab, &["run"], &[]).wait();
    assert_eq!(status.code(), Some(0), "{screen}");
    // The same lines in their order, each whole, between what is drawn again and again.
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let screen = masked(&lab, &screen);
    let mut rest = dense(&screen);
    for line in piped.lines().map(|line| dense(line.trim_end_matches("(SPENT)"))) {
        let at = rest.find(&line).unwrap_or_else(|| panic!("no `{line}` behind what came before it in:\n{screen}"));
        rest.drain(..at + line.len());
    }
    assert!(screen.contains("work on total, round 2: react") && screen.contains("0 of 1 pass | "), "{screen}");
    assert!(!screen.contains("{\""), "no JSON: {screen}");

    // To go on with what is complete says once more that it is, and how to get it.
    let again = masked(&lab, &lab.run(&["resume"]).expect(0).stdout);
    assert!(again.contains("completed: 1 of 1 features pass") && again.contains("longhaul merge RUN"), "{again}");
}
