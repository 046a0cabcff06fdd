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

use super::reply::json;
use super::state::SharedState;
use super::{document, page, scopes};
use axum::Router;
use axum::middleware::from_fn;
use axum::routing::get;
use http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All routes, with the description of the API among them.
pub fn router(state: &SharedState) -> Router {
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
        .with_state(state.clone())
}

/// The routes that the description is made of.
#[rustfmt::skip]
pub(super) fn api() -> OpenApiRouter<SharedState> {
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
