//! The operations of the API, each declared once.
//!
//! The attribute of a handler declares its method, its path and its part of the OpenAPI document; [`operations`] lists
//! the handler with its scope. The router, the scopes that requests are checked against and the document follow from
//! the list. An operation below `/api` without a scope refuses every caller.

use super::reply::json;
use super::routes::{
    agents, approvals, archive, calls, commits, comparison, events, exec, exports, features, forks, graphs, journal,
    knowledge, plugins, projects, rehearsals, reports, resources, runs, schedules, server, workers,
};
use super::scopes::{self, OperationScopes};
use super::state::SharedState;
use super::{document, page};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use http::{Method, StatusCode};
use longhaul_api::tokens::TokenScope::{self, Admin, Approve, Read, Run};
use std::sync::Arc;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};
use utoipa_axum::routes;

/// Path of the OpenAPI document, which does not describe itself.
const DOCUMENT: &str = "/api/v1/openapi.json";

/// The router of all operations, of the OpenAPI document and of the web page.
pub fn router(state: &SharedState) -> Router {
    let Operations { router, mut scopes } = operations();
    let (router, mut described) = router.split_for_parts();
    document::complete(&mut described, &scopes);
    let text = serde_json::to_vec(&described).unwrap_or_default();
    let document = move || {
        let text = text.clone();
        async move { json(StatusCode::OK, text) }
    };
    scopes.add(Method::GET, DOCUMENT, Read);
    router
        .route(DOCUMENT, get(document))
        .route("/", get(page::index))
        .route("/{file}", get(page::file))
        .route_layer(from_fn_with_state(Arc::new(scopes), scopes::check))
        .with_state(state.clone())
}

/// Every operation with the scope that it needs. Some need more by what the body names; their handlers say so.
fn operations() -> Operations {
    Operations::new()
        .open(routes!(server::health))
        .open(routes!(server::ready))
        .needs(Read, routes!(server::metrics))
        .needs(Read, routes!(server::whoami))
        .needs(Read, routes!(projects::list))
        .needs(Admin, routes!(projects::create))
        .needs(Read, routes!(runs::list))
        .needs(Run, routes!(runs::start))
        .needs(Run, routes!(runs::ask))
        .needs(Read, routes!(runs::status))
        .needs(Run, routes!(runs::pause))
        .needs(Run, routes!(runs::resume))
        .needs(Run, routes!(forks::fork))
        .needs(Run, routes!(runs::abandon))
        .needs(Run, routes!(archive::archive))
        .needs(Run, routes!(archive::unarchive))
        .needs(Run, routes!(rehearsals::move_run))
        .needs(Run, routes!(runs::steer))
        .needs(Run, routes!(runs::answer))
        .needs(Run, routes!(runs::recheck))
        .needs(Run, routes!(runs::revert))
        .needs(Run, routes!(runs::cancel))
        .needs(Read, routes!(runs::log))
        .needs(Read, routes!(commits::commit))
        .needs(Read, routes!(runs::ledger))
        .needs(Read, routes!(reports::report))
        .needs(Read, routes!(features::list))
        .needs(Run, routes!(features::add))
        .needs(Run, routes!(features::edit))
        .needs(Run, routes!(features::drop))
        .needs(Read, routes!(journal::list))
        .needs(Read, routes!(journal::entries))
        .needs(Read, routes!(journal::recording))
        .needs(Read, routes!(journal::at))
        .needs(Run, routes!(journal::replay))
        .needs(Run, routes!(rehearsals::rehearse))
        .needs(Read, routes!(events::page))
        .needs(Read, routes!(events::stream))
        .needs(Read, routes!(events::stream_all))
        .needs(Read, routes!(approvals::list))
        .needs(Read, routes!(approvals::show))
        .needs(Approve, routes!(approvals::answer))
        .needs(Read, routes!(approvals::rules))
        .needs(Approve, routes!(approvals::revoke))
        .needs(Read, routes!(knowledge::decisions))
        .needs(Run, routes!(knowledge::judge))
        .needs(Read, routes!(knowledge::memory))
        .needs(Run, routes!(knowledge::forget))
        .needs(Read, routes!(knowledge::proposals))
        .needs(Run, routes!(knowledge::accept))
        .needs(Run, routes!(knowledge::reject))
        .needs(Read, routes!(knowledge::trajectories))
        .needs(Read, routes!(knowledge::trajectory))
        .needs(Read, routes!(exports::export_trajectories))
        .needs(Run, routes!(knowledge::annotate))
        .needs(Read, routes!(agents::list))
        .needs(Admin, routes!(agents::register))
        .needs(Read, routes!(agents::show))
        .needs(Admin, routes!(agents::update))
        .needs(Admin, routes!(agents::remove))
        .needs(Run, routes!(agents::activate))
        .needs(Run, routes!(agents::deactivate))
        .needs(Run, routes!(agents::execute))
        .needs(Read, routes!(agents::artifact))
        .needs(Run, routes!(agents::set_artifact))
        .needs(Run, routes!(agents::clear_artifact))
        .needs(Read, routes!(agents::history))
        .needs(Read, routes!(schedules::list))
        .needs(Run, routes!(schedules::create))
        .needs(Read, routes!(schedules::show))
        .needs(Run, routes!(schedules::replace))
        .needs(Run, routes!(schedules::remove))
        .needs(Run, routes!(schedules::pause))
        .needs(Run, routes!(schedules::resume))
        .needs(Run, routes!(schedules::run_now))
        .needs(Read, routes!(schedules::skipped))
        .needs(Read, routes!(schedules::status))
        .needs(Read, routes!(schedules::tasks))
        .needs(Read, routes!(schedules::of_agent))
        .needs(Read, routes!(schedules::task))
        .needs(Run, routes!(schedules::retry))
        .needs(Read, routes!(graphs::list))
        .needs(Run, routes!(graphs::create))
        .needs(Read, routes!(graphs::show))
        .needs(Run, routes!(graphs::remove_graph))
        .needs(Read, routes!(graphs::output))
        .needs(Run, routes!(graphs::run))
        .needs(Run, routes!(graphs::change))
        .needs(Run, routes!(graphs::add))
        .needs(Run, routes!(graphs::remove))
        .needs(Run, routes!(graphs::diagnose))
        .needs(Read, routes!(reports::costs))
        .needs(Read, routes!(comparison::compare))
        .needs(Read, routes!(resources::show))
        .needs(Read, routes!(workers::list))
        .needs(Read, routes!(plugins::list))
        .needs(Run, routes!(exec::run))
        .needs(Read, routes!(exec::sessions))
        .needs(Run, routes!(exec::end_session))
        .needs(Read, routes!(calls::list))
        .needs(Read, routes!(calls::call))
}

/// Operations, as they are added one by one.
struct Operations {
    router: OpenApiRouter<SharedState>,
    scopes: OperationScopes,
}

impl Operations {
    fn new() -> Self {
        Self { router: OpenApiRouter::with_openapi(document::empty()), scopes: OperationScopes::default() }
    }

    /// Adds an operation that a caller without a token may use.
    fn open(self, operation: UtoipaMethodRouter<SharedState>) -> Self {
        Self { router: self.router.routes(operation), ..self }
    }

    /// Adds an operation that needs a scope.
    fn needs(mut self, scope: TokenScope, mut operation: UtoipaMethodRouter<SharedState>) -> Self {
        let (_, described, _) = &mut operation;
        for (path, item) in &mut described.paths {
            for (method, _) in document::operations(item) {
                self.scopes.add(method, path, scope);
            }
        }
        self.open(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::needs_token;
    use super::super::scopes::OperationScope;
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    /// Words of the early drafts that the field has other words for. No published name contains one.
    const PRIVATE_WORDS: &[&str] = &[
        "asks", "culprit", "handed", "heard", "held", "letter", "letters", "said", "shelf", "speaker", "spent",
        "standing", "tally", "took", "waits", "wakes", "why",
    ];

    #[test]
    fn every_operation_has_its_scope_and_its_description() {
        let Operations { router, scopes } = operations();
        let mut api = router.into_openapi();
        document::complete(&mut api, &scopes);
        let mut described: Vec<(Method, String)> = Vec::new();
        let mut names = BTreeSet::new();
        for (path, item) in &mut api.paths.paths {
            for (method, operation) in document::operations(item) {
                let is_open = !needs_token(path);
                assert_eq!(scopes.of(&method, path).is_none(), is_open, "{method} {path} has a scope, or is open");
                assert_eq!(operation.security.is_none(), is_open, "{method} {path} says which scope it needs");
                assert!(operation.summary.is_some(), "{method} {path} says what it is for");
                let name = operation.operation_id.clone().unwrap_or_default();
                assert!(names.insert(name.clone()), "{method} {path}: `{name}` is another's name");
                described.push((method, path.clone()));
            }
        }
        for OperationScope { method, path, .. } in scopes.0 {
            assert!(described.contains(&(method.clone(), path.clone())), "{method} {path} is described");
        }
    }

    #[test]
    fn no_published_name_contains_a_private_word() {
        let mut api = operations().router.into_openapi();
        document::complete(&mut api, &OperationScopes::default());
        let mut published = BTreeSet::new();
        add_names(&serde_json::to_value(&api).expect("a document"), &mut published);
        for name in ["ApprovalStatus", "next_wake_ms", "scope"] {
            assert!(published.contains(name), "`{name}` is published: {published:?}");
        }
        let is_private = |name: &&String| words(name).iter().any(|word| PRIVATE_WORDS.contains(&word.as_str()));
        let private: Vec<&String> = published.iter().filter(is_private).collect();
        assert!(private.is_empty(), "use the words of the field: {private:?}");
    }

    /// Adds the names of the schemas, the properties and the parameters anywhere in a document.
    fn add_names(value: &Value, published: &mut BTreeSet<String>) {
        value.as_array().into_iter().flatten().for_each(|item| add_names(item, published));
        for (key, value) in value.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("schemas" | "properties", Value::Object(named)) => published.extend(named.keys().cloned()),
                ("parameters", Value::Array(list)) => {
                    published.extend(list.iter().filter_map(|one| one["name"].as_str()).map(str::to_owned));
                }
                _ => (),
            }
            add_names(value, published);
        }
    }

    /// The words of a name such as `RunStatus` or `next_wake_ms`, in lower case.
    fn words(name: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for char in name.chars() {
            if !char.is_ascii_alphanumeric() || char.is_ascii_uppercase() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut().filter(|_| char.is_ascii_alphanumeric()) {
                word.push(char.to_ascii_lowercase());
            }
        }
        words
    }

    #[test]
    fn requests_are_read_under_the_names_of_early_drafts() {
        check_is_read::<knowledge::MemoryQuery>(&json!({ "shelf": "fact" }));
        check_is_read::<knowledge::ForgetQuery>(&json!({ "key": "port", "shelf": "fact" }));
        check_is_read::<knowledge::Rejection>(&json!({ "why": "not now" }));
        check_is_read::<runs::NewAnswer>(&json!({ "take_back": true }));
    }

    /// Unknown fields are refused, so a request that is read has known ones alone.
    #[track_caller]
    fn check_is_read<T: DeserializeOwned>(request: &Value) {
        let read = serde_json::from_value::<T>(request.clone());
        assert!(read.is_ok(), "{request}: {:?}", read.err());
    }
}
