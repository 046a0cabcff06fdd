//! The routes, by what they are about. Each is a request of the service and a view of its answer.

mod agents;
mod approvals;
mod events;
mod exec;
mod features;
mod journal;
mod knowledge;
mod plugins;
mod projects;
mod reports;
mod resources;
mod runs;
mod schedules;
mod server;

use super::Shared;
use super::input::Window;
use super::problem::Problem;
use super::{document, page, scopes};
use crate::service::{Answer, Request, Status, Which};
use axum::Router;
use axum::body::Body;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All routes, with the description of the API among them.
pub fn router(hall: &Shared) -> Router {
    let (api, mut described) = api().split_for_parts();
    document::complete(&mut described);
    let text = serde_json::to_vec(&described).unwrap_or_default();
    let document = move || {
        let text = text.clone();
        async move { json(StatusCode::OK, text) }
    };
    api.route("/api/v1/openapi.json", get(document))
        .route("/", get(page::index))
        .route("/{file}", get(page::file))
        .route_layer(from_fn(scopes::check))
        .with_state(hall.clone())
}

/// The routes that the description is made of.
#[rustfmt::skip]
pub(super) fn api() -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(document::empty())
        .routes(routes!(server::health))
        .routes(routes!(server::ready))
        .routes(routes!(server::metrics))
        .routes(routes!(server::whoami))
        .routes(routes!(projects::list, projects::create))
        .routes(routes!(runs::list, runs::start))
        .routes(routes!(runs::ask))
        .routes(routes!(runs::status))
        .routes(routes!(runs::pause))
        .routes(routes!(runs::resume))
        .routes(routes!(runs::abandon))
        .routes(routes!(runs::steer))
        .routes(routes!(runs::answer))
        .routes(routes!(runs::recheck))
        .routes(routes!(runs::revert))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::log))
        .routes(routes!(runs::ledger))
        .routes(routes!(reports::report))
        .routes(routes!(features::list, features::add))
        .routes(routes!(features::edit, features::drop))
        .routes(routes!(journal::list))
        .routes(routes!(journal::entries))
        .routes(routes!(journal::replay))
        .routes(routes!(events::page))
        .routes(routes!(events::stream))
        .routes(routes!(events::stream_all))
        .routes(routes!(approvals::list))
        .routes(routes!(approvals::show))
        .routes(routes!(approvals::answer))
        .routes(routes!(approvals::rules))
        .routes(routes!(approvals::revoke))
        .routes(routes!(knowledge::decisions))
        .routes(routes!(knowledge::judge))
        .routes(routes!(knowledge::memory, knowledge::forget))
        .routes(routes!(knowledge::proposals))
        .routes(routes!(knowledge::accept))
        .routes(routes!(knowledge::reject))
        .routes(routes!(knowledge::trajectories))
        .routes(routes!(knowledge::trajectory))
        .routes(routes!(knowledge::annotate))
        .routes(routes!(agents::list, agents::register))
        .routes(routes!(agents::show, agents::update, agents::remove))
        .routes(routes!(agents::activate))
        .routes(routes!(agents::deactivate))
        .routes(routes!(agents::execute))
        .routes(routes!(agents::artifact, agents::set_artifact, agents::clear_artifact))
        .routes(routes!(agents::history))
        .routes(routes!(schedules::list, schedules::create))
        .routes(routes!(schedules::show, schedules::replace, schedules::remove))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(schedules::run_now))
        .routes(routes!(schedules::skipped))
        .routes(routes!(schedules::status))
        .routes(routes!(schedules::tasks))
        .routes(routes!(schedules::of_agent))
        .routes(routes!(schedules::task))
        .routes(routes!(schedules::retry))
        .routes(routes!(reports::costs))
        .routes(routes!(resources::show))
        .routes(routes!(plugins::list))
        .routes(routes!(exec::run))
}

/// An answer, or what is wrong.
type Told<T> = Result<Out<T>, Problem>;

/// An answer in JSON.
struct Out<T>(T);

/// The same of something that was made.
struct Made<T> {
    told: T,
    location: Option<String>,
}

impl<T: Serialize> IntoResponse for Out<T> {
    fn into_response(self) -> Response {
        serde_json::to_vec(&self.0).map_or_else(
            |error| {
                tracing::error!("an answer cannot be written: {error}");
                Problem::internal().into_response()
            },
            |text| json(StatusCode::OK, text),
        )
    }
}

impl<T: Serialize> IntoResponse for Made<T> {
    fn into_response(self) -> Response {
        let mut response = Out(self.told).into_response();
        if response.status().is_success() {
            *response.status_mut() = StatusCode::CREATED;
            if let Some(Ok(place)) = self.location.map(|place| HeaderValue::from_str(&place)) {
                response.headers_mut().insert(header::LOCATION, place);
            }
        }
        response
    }
}

fn json(status: StatusCode, text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
struct Page<T> {
    /// The items.
    items: Vec<T>,
    /// Items of the whole list.
    total: usize,
    /// Items of a page.
    limit: usize,
    /// Items before this page.
    offset: usize,
}

impl<T> Page<T> {
    /// The page of a list; only what is on it is made into views.
    fn of<F>(all: Vec<F>, window: Window, view: impl Fn(F) -> T) -> Self {
        let (total, Window { limit, offset }) = (all.len(), window);
        let items = all.into_iter().skip(offset).take(limit).map(view).collect();
        Self { items, total, limit, offset }
    }
}

/// The run whose name a path has, or begins.
fn which(run: &str) -> Result<Which, Problem> {
    const DIGITS_MIN: usize = 4;
    let digits = run.strip_prefix("r-").unwrap_or_default();
    let is_name = digits.len() >= DIGITS_MIN && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_name {
        Ok(Which::Named(run.to_owned()))
    } else {
        Err(Problem::unknown("there is no such run; GET /api/v1/runs lists them"))
    }
}

/// A run at length.
async fn status(hall: &Shared, run: &str) -> Result<Box<Status>, Problem> {
    match hall.ask(Request::Status { run: which(run)? }).await? {
        Answer::Status(status) => Ok(status),
        _ => Err(Problem::odd()),
    }
}
