//! Several models behind one name: the next one is asked when one fails.
//!
//! A failure falls through only if another model may do better: not when a model refused, since asking on until one
//! agrees would bypass the refusal; not when the request is invalid, since it is invalid for all; and not at a cap of
//! the run. A failed model is not asked for a time, so that each request of a long outage does not wait for it again.
//! The reply keeps which model answered, and why others failed; this file stores nothing durable.

use longhaul_core::model::{Cost, Model, ModelError, ModelInfo, ModelReply, ModelRequest, ReplyListener, Route, Usage};
use longhaul_core::text::truncate;
use longhaul_core::{Digest, InvocationId, Outage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Bytes of a model's failure that a reply keeps.
const WHY_BYTES_MAX: usize = 300;

/// A failure that lets the next model be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FallsThrough {
    /// It is unavailable, or overloaded, after all retries.
    Unavailable,
    /// Its provider denies access: a refused key, no credit, an unknown model, a request that it does not accept.
    Denied,
    /// Its answer is unusable.
    Failed,
    /// The request is longer than its window. Only a model with a larger one is asked then.
    ContextFull,
}

impl FallsThrough {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Unavailable, Self::Denied, Self::Failed, Self::ContextFull];

    fn of(error: &ModelError) -> Option<Self> {
        match error {
            ModelError::Unavailable(_) => Some(Self::Unavailable),
            ModelError::Denied(_) | ModelError::Rejected(_) => Some(Self::Denied),
            ModelError::Failed(_) => Some(Self::Failed),
            ModelError::ContextFull(_) => Some(Self::ContextFull),
            ModelError::Limit(_) | ModelError::Refused(_) | ModelError::Invalid(_) => None,
        }
    }
}

/// A table `[models.NAME]` with `provider = "route"`: other models, by their names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteConfig {
    /// Their names, at least one.
    pub models: Vec<String>,
    /// The order of asking. Default `order`.
    #[serde(default)]
    pub by: RouteBy,
}

/// The order in which models are asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteBy {
    /// The first on the list whose window holds the request.
    #[default]
    Order,
    /// The lowest maximum cost of the request, by its prices: all input at the highest price, and the longest reply. Of
    /// equal ones the first on the list; those without a known price come last.
    Cost,
}

/// One of several models.
pub(crate) struct RouteMember {
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Model>,
}

/// Several models behind one name.
pub(crate) struct Routed {
    members: Vec<RouteMember>,
    by: RouteBy,
    /// The window of the name.
    window: u32,
    falls_on: Vec<FallsThrough>,
    rest: Duration,
    /// Until when a model is not asked, by name.
    resting: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Routed {
    /// `members` must not be empty.
    pub(crate) fn new(
        members: Vec<RouteMember>,
        by: RouteBy,
        window: u32,
        falls_on: Vec<FallsThrough>,
        rest: Duration,
    ) -> Self {
        Self { members, by, window, falls_on, rest, resting: Arc::default() }
    }

    /// The models in the order for this request: those whose window holds it, and of these those that are not resting,
    /// come first.
    fn order(&self, request: &ModelRequest) -> Vec<&RouteMember> {
        let needed = request.tokens_estimated();
        let fits = |member: &RouteMember| {
            let window = member.model.info().context_tokens_max;
            window == 0 || needed <= u64::from(window)
        };
        let mut order: Vec<&RouteMember> = self.members.iter().collect();
        if self.by == RouteBy::Cost {
            // An unknown price may be any.
            let most = |member: &RouteMember| member.model.cost_most(request).cost().unwrap_or(f64::INFINITY);
            order.sort_by(|a, b| most(a).total_cmp(&most(b)));
        }
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let rests = |member: &RouteMember| resting.get(&member.name).is_some_and(|until| *until > now);
        order.sort_by_key(|member| (!fits(member), rests(member)));
        order
    }

    /// An unavailable or denying model is asked again only after its rest.
    fn note(&self, member: &RouteMember, error: &ModelError) {
        let rest = match error {
            ModelError::Unavailable(outage) => {
                self.rest.max(Duration::from_millis(outage.retry_after_ms.unwrap_or(0).into()))
            }
            ModelError::Denied(_) | ModelError::Rejected(_) => self.rest,
            _ => return,
        };
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(member.name.clone(), Instant::now() + rest);
    }

    fn falls_through(&self, error: &ModelError) -> bool {
        FallsThrough::of(error).is_some_and(|failure| self.falls_on.contains(&failure))
    }
}

#[async_trait::async_trait]
impl Model for Routed {
    fn info(&self) -> ModelInfo {
        let id = self.members.first().map(|member| member.model.info().id).unwrap_or_default();
        ModelInfo { id, context_tokens_max: self.window }
    }

    /// The most, whichever of them answers.
    fn cost_most(&self, request: &ModelRequest) -> Usage {
        let each = self.members.iter().map(|member| member.model.cost_most(request));
        each.reduce(|one, other| Usage {
            input_tokens: one.input_tokens.max(other.input_tokens),
            output_tokens: one.output_tokens.max(other.output_tokens),
            cost_microdollars: one.cost_microdollars.max(other.cost_microdollars),
            cost_unknown: one.cost_unknown || other.cost_unknown,
            ..one
        })
        .unwrap_or_default()
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
        cost: &dyn Cost,
    ) -> Result<ModelReply, ModelError> {
        let mut failed: Vec<(String, ModelError)> = Vec::new();
        let mut window_max = 0;
        for member in self.order(request) {
            let window = member.model.info().context_tokens_max;
            let is_full = failed.last().is_some_and(|(_, error)| matches!(error, ModelError::ContextFull(_)));
            if is_full && window <= window_max {
                continue;
            }
            if !failed.is_empty() {
                cost.again().await.map_err(ModelError::Limit)?;
            }
            let own = ModelRequest { model: member.name.clone(), ..request.clone() };
            let error = match member.model.ask(&own, heard, cost).await {
                Ok(reply) => return Ok(routed(reply, member, &self.members, failed)),
                Err(error) => error,
            };
            self.note(member, &error);
            let falls = self.falls_through(&error);
            window_max = window_max.max(window);
            tracing::warn!(model = %member.name, %error, falls, "a model failed");
            failed.push((member.name.clone(), error));
            if !falls {
                break;
            }
            heard(&format!("\n[model `{}` failed]\n", member.name));
        }
        Err(altogether(failed))
    }

    fn within(&self, invocation: &InvocationId, answered: &[Digest]) -> Option<Arc<dyn Model>> {
        let narrowed: Vec<_> = self.members.iter().map(|member| member.model.within(invocation, answered)).collect();
        if narrowed.iter().all(Option::is_none) {
            return None;
        }
        let own = |(member, narrowed): (&RouteMember, Option<Arc<dyn Model>>)| RouteMember {
            name: member.name.clone(),
            model: narrowed.unwrap_or_else(|| Arc::clone(&member.model)),
        };
        Some(Arc::new(Self {
            members: self.members.iter().zip(narrowed).map(own).collect(),
            by: self.by,
            window: self.window,
            falls_on: self.falls_on.clone(),
            rest: self.rest,
            resting: Arc::clone(&self.resting),
        }))
    }
}

/// A reply names its route, unless that is the plain one.
fn routed(
    mut reply: ModelReply,
    member: &RouteMember,
    members: &[RouteMember],
    failed: Vec<(String, ModelError)>,
) -> ModelReply {
    let is_plain = failed.is_empty() && members.first().is_some_and(|first| first.name == member.name);
    if is_plain && reply.route.is_none() {
        return reply;
    }
    let why = |(name, error): (String, ModelError)| (name, truncate(&error.to_string(), WHY_BYTES_MAX));
    let route = reply.route.get_or_insert_default();
    route.served_by.clone_from(&member.name);
    route.provider_model = member.model.info().id;
    route.failed = failed.into_iter().map(why).collect();
    reply
}

/// The error of a route of which no model replied: an outage if one of them may recover, since then the run waits; else
/// the last failure.
fn altogether(mut failed: Vec<(String, ModelError)>) -> ModelError {
    if failed.len() == 1 {
        return failed.remove(0).1;
    }
    let Some((_, last)) = failed.last() else { return ModelError::Failed("no model is configured".to_owned()) };
    if FallsThrough::of(last).is_none() {
        return last.clone();
    }
    let words = |(name, error): &(String, ModelError)| truncate(&format!("`{name}`: {error}"), WHY_BYTES_MAX);
    let reason = format!("no model replied: {}", failed.iter().map(words).collect::<Vec<_>>().join("; "));
    let waits = failed.iter().filter_map(|(_, error)| match error {
        ModelError::Unavailable(outage) => Some(outage.retry_after_ms),
        _ => None,
    });
    match waits.reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b)).or(a).or(b)) {
        Some(retry_after_ms) => ModelError::Unavailable(Outage { reason, retry_after_ms }),
        None => last.clone(),
    }
}

/// The route of a reply that came from the cache.
pub(crate) fn cached(mut reply: ModelReply, name: &str, provider_model: String) -> ModelReply {
    reply.route = Some(Route { served_by: name.to_owned(), provider_model, failed: Vec::new(), cached: true });
    // No server was asked. The model and the id are those of the reply that was kept.
    if let Some(endpoint) = &mut reply.endpoint {
        (endpoint.server, endpoint.port, endpoint.streamed) = (None, None, false);
    }
    reply
}

#[cfg(test)]
mod tests;
