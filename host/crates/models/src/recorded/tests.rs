//! The replies of a recording, and its errors.

use super::*;
use longhaul_core::model::{Message, MessageRole};

fn request(edit: impl FnOnce(&mut ModelRequest)) -> ModelRequest {
    let mut request = ModelRequest {
        model: "local".into(),
        system: "you write tests".into(),
        messages: vec![Message::text(MessageRole::User, "add a test for the parser of dates, please")],
        tools: vec![],
        format: Default::default(),
        prefill: None,
        stop: vec![],
        output_tokens_max: 100,
        temperature: Some(0.7),
        seed: Some(1),
    };
    edit(&mut request);
    request
}

fn reply(text: &str) -> ModelReply {
    ModelReply { text: text.into(), ..ModelReply::default() }
}

/// A file with a reply for each request, as `(request, within, reply)`.
fn recording(lines: &[(ModelRequest, Option<&str>, &str)]) -> Arc<Recording> {
    let mut text = "{\"longhaul_recording\":1}\n".to_owned();
    for (request, within, words) in lines {
        let line = Line {
            digest: request.digest(),
            within: within.map(str::to_owned),
            summary: summary(request),
            request: request.clone(),
            reply: reply(words),
        };
        text.push_str(&(serde_json::to_string(&line).unwrap() + "\n"));
    }
    Arc::new(Recording::parse(Path::new("run.jsonl"), &text).unwrap())
}

fn invocation(text: &str) -> InvocationId {
    InvocationId::from_text(text)
}

async fn ask(model: &dyn Model, request: &ModelRequest) -> String {
    match model.complete(request, &mut |_| {}).await {
        Ok(reply) => reply.text,
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn an_unknown_request_is_refused_with_what_differs() {
    type Edit = fn(&mut ModelRequest);
    let cases: [(Edit, &str); 9] = [
        (
            |r| r.messages[0] = Message::text(MessageRole::User, "add a test for the parser of times, please"),
            "`messages[0].parts[0].text` differs at character 30: recorded …\"e parser of dates, please\", asked …\"e parser of times, please\"",
        ),
        (
            |r| r.system = "you write code".into(),
            "`system` differs at character 11: recorded \"you write tests\", asked \"you write code\"",
        ),
        (|r| r.temperature = Some(0.8), "`temperature` differs at character 3: recorded \"0.7\", asked \"0.8\""),
        (|r| r.seed = None, "`seed` differs at character 1: recorded \"1\", asked \"null\""),
        (|r| r.stop = vec!["END".into()], "`stop` is missing: recorded \"[]\"; 1 more differ: `stop[0]`"),
        (
            |r| r.messages.push(Message::text(MessageRole::Assistant, "no")),
            "`messages[1].speaker` was not there: asked \"assistant\"; 1 more differ: `messages[1].parts[0].text`",
        ),
        (
            |r| r.messages[0] = Message::text(MessageRole::User, "add a test for the parser of 日時"),
            "differs at character 30: recorded …\"e parser of dates, please\", asked …\"e parser of 日時\"",
        ),
        (
            |r| r.messages[0] = Message::text(MessageRole::User, "\u{1b}[31m\n"),
            "differs at character 1: recorded \"add a test for the parser of\"…, asked \"\\u{1b}[31m\\n\"",
        ),
        (
            |r| r.output_tokens_max = 90,
            "is not in the recording `run.jsonl`; the nearest is line 2: `output_tokens_max` differs at character 1: recorded \"100\", asked \"90\"; record it again",
        ),
    ];
    let recorded = Recorded::new(
        recording(&[(request(|_| {}), None, "done"), (request(|r| r.system = "other".into()), None, "x")]),
        100,
    );
    for (edit, expected) in cases {
        let text = ask(&recorded, &request(edit)).await;
        assert!(text.contains(expected), "\n{text}\nlacks\n{expected}");
    }
}

#[tokio::test]
async fn the_nearest_request_is_the_one_that_differs_in_fewest_fields_and_latest() {
    let say = |text: &str| request(|r| r.messages[0] = Message::text(MessageRole::User, text));
    let recorded = Recorded::new(
        recording(&[(say("one two"), None, ""), (say("one two three"), None, ""), (say("two"), None, "")]),
        100,
    );
    let text = ask(&recorded, &say("one two three four")).await;
    assert!(text.contains("the nearest is line 3: "), "{text}");
}

#[tokio::test]
async fn the_nth_request_gets_the_nth_reply_and_the_last_does_not_repeat() {
    let recorded = Recorded::new(recording(&[(request(|_| {}), None, "a"), (request(|_| {}), None, "b")]), 100);
    let asked = request(|r| r.model = "another name".into());
    assert_eq!(ask(&recorded, &asked).await, "a");
    assert_eq!(ask(&recorded, &asked).await, "b");
    let text = ask(&recorded, &asked).await;
    assert!(text.contains("has 2 recorded replies in `run.jsonl` and was asked once more; record it again"), "{text}");
}

#[tokio::test]
async fn an_invocation_counts_its_own_requests_and_is_found_in_another_run() {
    let same = || request(|_| {});
    let lines = [
        (same(), Some("f1/1/generate"), "one"),
        (same(), Some("f2/1/generate"), "two"),
        (same(), Some("f1/1/generate"), "three"),
    ];
    let recorded = Recorded::new(recording(&lines), 100);
    let first = recorded.within(&invocation("r-999999999999/f1/1/generate"), &[]).unwrap();
    let second = recorded.within(&invocation("r-999999999999/f2/1/generate"), &[]).unwrap();
    assert_eq!(ask(&*second, &same()).await, "two");
    assert_eq!(ask(&*first, &same()).await, "one");
    assert_eq!(ask(&*first, &same()).await, "three");
    assert!(ask(&*second, &same()).await.contains("within `f2/1/generate`"));
    let other = recorded.within(&invocation("r-9/f3/1/generate"), &[]).unwrap();
    assert!(ask(&*other, &same()).await.contains("nothing is recorded there"));
}

#[tokio::test]
async fn a_resumed_invocation_goes_on_after_what_its_journal_has_answered() {
    let same = request(|_| {});
    let recorded = Recorded::new(recording(&[(same.clone(), None, "a"), (same.clone(), None, "b")]), 100);
    let resumed = recorded.within(&invocation("r-1/f1/1/generate"), &[same.digest()]).unwrap();
    assert_eq!(ask(&*resumed, &same).await, "b");
}

#[tokio::test]
async fn what_is_recorded_is_answered_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.jsonl");
    let same = request(|_| {});
    let real: Arc<dyn Model> =
        Arc::new(Recorded::new(recording(&[(same.clone(), None, "é\n1"), (same.clone(), None, "2")]), 77));
    for times in 1..=2 {
        // Opened again each time; the second time after a line that a crash truncated.
        let recorder = Recording::record(Arc::clone(&real), &path).unwrap();
        let place = invocation("r-1/f1/1/generate");
        ask(&*recorder.within(&place, &vec![same.digest(); times - 1]).unwrap(), &same).await;
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(b"{\"digest\":\"cut o").unwrap();
    }
    let recorded = Recorded::new(Arc::new(Recording::read(&path).unwrap()), 77);
    assert_eq!(ask(&recorded, &same).await, "é\n1");
    assert_eq!(ask(&recorded, &same).await, "2");
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_file_that_is_no_recording_is_refused_with_its_line() {
    let good = serde_json::to_string(&recording(&[(request(|_| {}), None, "")]).lines[0].1).unwrap();
    let head = "{\"longhaul_recording\":1}";
    let cases = [
        (String::new(), "line 1: its first line is not"),
        ("{\"longhaul_recording\":2}\n".to_owned(), "line 1: its first line is not"),
        (format!("{good}\n"), "line 1: its first line is not"),
        (format!("{head}\n{good}\n{{\n"), "line 3: "),
        (format!("{head}\n{}\n", good.replace("dates", "times")), "line 2: its request has the digest "),
        (format!("{head}\n{}\n", good.replace("\"summary\"", "\"sumary\"")), "line 2: unknown field `sumary`"),
    ];
    for (text, expected) in cases {
        let error = Recording::parse(Path::new("run.jsonl"), &text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(Recording::parse(Path::new("r"), &format!("{head}\n{good}\n{{\"dig")).unwrap().lines.len(), 1);
}
