//! The order of models, and fallbacks after failures. The models are scripted fakes.

use super::*;
use longhaul_core::model::{Message, MessageRole};
use longhaul_core::{Denial, LimitHit};
use std::collections::VecDeque;

struct FakeModel {
    window: u32,
    price: f64,
    answers: Mutex<VecDeque<Result<&'static str, ModelError>>>,
    asked: Mutex<u32>,
}

#[async_trait::async_trait]
impl Model for FakeModel {
    fn info(&self) -> ModelInfo {
        ModelInfo { id: "fake".into(), context_tokens_max: self.window }
    }

    fn cost_most(&self, _request: &ModelRequest) -> Usage {
        Usage { cost_microdollars: self.price, ..Usage::default() }
    }

    async fn ask(
        &self,
        _request: &ModelRequest,
        _heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        *self.asked.lock().unwrap() += 1;
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or(Ok("again"));
        if answer.is_err() {
            cost.wasted(Usage { output_tokens: 3, cost_microdollars: 5.0, ..Usage::default() });
        }
        answer.map(|text| ModelReply { text: text.into(), ..ModelReply::default() })
    }
}

type Answers = Vec<Result<&'static str, ModelError>>;

fn fake(window: u32, answers: Answers) -> Arc<FakeModel> {
    priced(window, 10.0, answers)
}

fn priced(window: u32, price: f64, answers: Answers) -> Arc<FakeModel> {
    Arc::new(FakeModel { window, price, answers: Mutex::new(answers.into()), asked: Mutex::new(0) })
}

fn request(chars: usize) -> ModelRequest {
    ModelRequest {
        model: "a".into(),
        system: String::new(),
        messages: vec![Message::text(MessageRole::User, "x".repeat(chars))],
        tools: vec![],
        format: Default::default(),
        prefill: None,
        stop: vec![],
        output_tokens_max: 100,
        temperature: None,
        seed: None,
    }
}

/// `a` and `b`.
fn two(a: &Arc<FakeModel>, b: &Arc<FakeModel>, by: RouteBy) -> Routed {
    let member = |name: &str, model: &Arc<FakeModel>| RouteMember {
        name: name.into(),
        model: Arc::clone(model) as Arc<dyn Model>,
    };
    let members = vec![member("a", a), member("b", b)];
    Routed::new(members, by, a.window, FallsThrough::ALL.to_vec(), Duration::from_secs(60))
}

async fn ask(routed: &Routed, chars: usize) -> Result<ModelReply, ModelError> {
    routed.complete(&request(chars), &mut |_| {}).await
}

fn unavailable(after: Option<u32>) -> ModelError {
    ModelError::Unavailable(Outage { reason: "overloaded".into(), retry_after_ms: after })
}

fn full() -> ModelError {
    ModelError::ContextFull(LimitHit::new("context_tokens_max", 11, 10))
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_another_model_may_not_share_falls_through_and_is_kept_with_the_reply() {
    let denied = ModelError::Denied(Denial { reason: "HTTP 401".into(), fix: "a key".into() });
    for error in [unavailable(None), denied, ModelError::Failed("nonsense".into())] {
        let (a, b) = (fake(100, vec![Err(error.clone())]), fake(100, vec![Ok("from b")]));
        let reply = ask(&two(&a, &b, RouteBy::Order), 8).await.unwrap();
        let route = reply.route.unwrap();
        assert_eq!((reply.text.as_str(), route.served_by.as_str()), ("from b", "b"));
        assert_eq!(route.failed, [("a".to_owned(), error.to_string())]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_a_wrong_request_and_a_cap_are_answers_and_no_other_model_is_asked() {
    let cap = ModelError::Limit(LimitHit::new("response_bytes_max", 2, 1));
    for error in [ModelError::Refused("no".into()), ModelError::Invalid("what".into()), cap] {
        let (a, b) = (fake(100, vec![Err(error.clone())]), fake(100, vec![]));
        assert_eq!(ask(&two(&a, &b, RouteBy::Order), 8).await.unwrap_err(), error);
        assert_eq!(*b.asked.lock().unwrap(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_failures_that_the_operator_names_fall_through() {
    let (a, b) = (fake(100, vec![Err(unavailable(None)), Err(ModelError::Failed("x".into()))]), fake(100, vec![]));
    let routed = Routed { falls_on: vec![FallsThrough::Failed], ..two(&a, &b, RouteBy::Order) };
    assert_eq!(ask(&routed, 8).await.unwrap_err(), unavailable(None));
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(ask(&routed, 8).await.unwrap().route.unwrap().served_by, "b");
}

#[tokio::test(start_paused = true)]
async fn what_is_too_long_goes_only_to_a_larger_window() {
    let (a, b) = (fake(100, vec![Err(full())]), fake(100, vec![]));
    assert_eq!(ask(&two(&a, &b, RouteBy::Order), 8).await.unwrap_err(), full());
    assert_eq!(*b.asked.lock().unwrap(), 0, "its window is no larger");
    let (a, b) = (fake(100, vec![Err(full())]), fake(1_000, vec![]));
    assert_eq!(ask(&two(&a, &b, RouteBy::Order), 8).await.unwrap().route.unwrap().served_by, "b");
    // A request that is known to be too long is not sent.
    let (a, b) = (fake(100, vec![]), fake(1_000, vec![]));
    assert_eq!(ask(&two(&a, &b, RouteBy::Order), 2_000).await.unwrap().route.unwrap().served_by, "b");
    assert_eq!(*a.asked.lock().unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_down_rests_and_is_asked_again_after_that() {
    let (a, b) = (fake(100, vec![Err(unavailable(Some(90_000))), Ok("a is back")]), fake(100, vec![]));
    let routed = two(&a, &b, RouteBy::Order);
    for _ in 0..3 {
        assert_eq!(ask(&routed, 8).await.unwrap().route.unwrap().served_by, "b");
    }
    assert_eq!(*a.asked.lock().unwrap(), 1);
    tokio::time::advance(Duration::from_secs(89)).await;
    assert_eq!(ask(&routed, 8).await.unwrap().text, "again", "the provider asked for 90 s");
    tokio::time::advance(Duration::from_secs(2)).await;
    let reply = ask(&routed, 8).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.route), ("a is back", None), "the plain way needs no word");
}

#[tokio::test(start_paused = true)]
async fn when_all_are_down_the_run_waits_for_the_first_that_may_be_back() {
    let (a, b) = (fake(100, vec![Err(unavailable(Some(5_000)))]), fake(100, vec![Err(unavailable(Some(2_000)))]));
    let ModelError::Unavailable(outage) = ask(&two(&a, &b, RouteBy::Order), 8).await.unwrap_err() else { panic!() };
    assert_eq!(outage.retry_after_ms, Some(2_000));
    assert_eq!(
        outage.reason,
        format!("no model replied: `a`: {}; `b`: {}", unavailable(Some(5_000)), unavailable(Some(2_000)))
    );
    // The last refusal decides; a permanently failing one leaves the outage.
    let (a, b) = (fake(100, vec![Err(unavailable(None))]), fake(100, vec![Err(ModelError::Refused("no".into()))]));
    assert_eq!(ask(&two(&a, &b, RouteBy::Order), 8).await.unwrap_err(), ModelError::Refused("no".into()));
    let (a, b) = (fake(100, vec![Err(unavailable(None))]), fake(100, vec![Err(ModelError::Failed("x".into()))]));
    assert!(matches!(ask(&two(&a, &b, RouteBy::Order), 8).await.unwrap_err(), ModelError::Unavailable(_)));
}

#[tokio::test(start_paused = true)]
async fn by_cost_the_cheapest_that_holds_the_request_is_asked_first() {
    let (a, b) = (fake(1_000, vec![]), priced(100, 1.0, vec![]));
    let routed = two(&a, &b, RouteBy::Cost);
    assert_eq!(ask(&routed, 8).await.unwrap().route.unwrap().served_by, "b");
    assert_eq!(ask(&routed, 2_000).await.unwrap().route, None, "it does not fit the cheaper one");
    assert_eq!((*a.asked.lock().unwrap(), *b.asked.lock().unwrap()), (1, 1));
}

/// Only the one that replied used to be counted.
#[tokio::test(start_paused = true)]
async fn what_the_models_that_failed_cost_is_told() {
    let nonsense = || Err(ModelError::Failed("nonsense".into()));
    for (answer, times) in [(Ok("from b"), 1), (nonsense(), 2)] {
        let (a, b) = (fake(100, vec![nonsense()]), fake(100, vec![answer]));
        let tally = longhaul_core::model::UsageTally::default();
        let _ = two(&a, &b, RouteBy::Order).ask(&request(8), &mut |_| {}, &tally).await;
        assert_eq!(
            (tally.wasted().output_tokens, tally.wasted().cost_microdollars),
            (3 * times, 5.0 * f64::from(times))
        );
    }
}
