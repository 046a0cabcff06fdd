//! The scope that each operation needs, and the check of every request against it.
//!
//! A path of the API without a scope refuses every caller. [`super::gate`] identified the caller before.

use super::gate::{self, needs_token};
use super::problem::Problem;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{Method, StatusCode};
use longhaul_api::tokens::TokenScope::{self, Read};
use std::sync::Arc;

/// The scopes of all operations.
#[derive(Default)]
pub struct OperationScopes(pub Vec<OperationScope>);

/// The scope of one operation.
pub struct OperationScope {
    /// Its method.
    pub method: Method,
    /// Its path, as the router matches it: `/api/v1/runs/{run}`.
    pub path: String,
    /// The scope that it needs.
    pub scope: TokenScope,
}

impl OperationScopes {
    /// Adds an operation.
    pub fn add(&mut self, method: Method, path: &str, scope: TokenScope) {
        self.0.push(OperationScope { method, path: path.to_owned(), scope });
    }

    /// The scope that an operation needs.
    pub fn of(&self, method: &Method, path: &str) -> Option<TokenScope> {
        // HEAD needs the same scope as GET.
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        self.0.iter().find(|one| one.method.as_str() == method && one.path == path).map(|one| one.scope)
    }

    fn has_path(&self, path: &str) -> bool {
        self.0.iter().any(|one| one.path == path)
    }
}

/// Lets a request go on if its caller has the scope of the operation. The response tells which route it was, under
/// which the time of the request is counted.
pub async fn check(
    State(scopes): State<Arc<OperationScopes>>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    let caller = gate::of(request.extensions());
    let allowed = match scopes.of(request.method(), path.as_str()) {
        Some(scope) => caller.expect(scope),
        // The router answers which methods the path takes.
        None if scopes.has_path(path.as_str()) => caller.expect(Read),
        None if !needs_token(path.as_str()) => Ok(()),
        None => Err(Problem::new(StatusCode::FORBIDDEN, "no scope permits this")),
    };
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    response.extensions_mut().insert(path);
    response
}

#[cfg(test)]
mod tests {
    use super::super::gate::Caller;
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use tower::ServiceExt as _;

    async fn check_status(caller: Caller, method: Method, path: &str, expected: StatusCode) {
        let mut scopes = OperationScopes::default();
        scopes.add(Method::GET, "/api/{listed}", Read);
        let router: Router = Router::new()
            .route("/api/{listed}", get(|| async { "listed" }))
            .route("/api/unlisted/{name}", get(|| async { "unlisted" }))
            .route("/open", get(|| async { "open" }))
            .route_layer(from_fn_with_state(Arc::new(scopes), check));
        let told = format!("{caller:?}: {method} {path}");
        let request = http::Request::builder().method(method).uri(path).extension(caller);
        let Ok(response) = router.oneshot(request.body(Body::empty()).expect("a request")).await;
        assert_eq!(response.status(), expected, "{told}");
    }

    #[tokio::test]
    async fn a_path_of_the_api_without_a_scope_lets_nobody_in() {
        check_status(Caller::Local, Method::GET, "/api/runs", StatusCode::OK).await;
        check_status(Caller::Local, Method::HEAD, "/api/runs", StatusCode::OK).await;
        check_status(Caller::Anybody, Method::GET, "/api/runs", StatusCode::UNAUTHORIZED).await;
        check_status(Caller::Anybody, Method::HEAD, "/api/runs", StatusCode::UNAUTHORIZED).await;
        check_status(Caller::Local, Method::GET, "/api/unlisted/runs", StatusCode::FORBIDDEN).await;
        check_status(Caller::Anybody, Method::GET, "/open", StatusCode::OK).await;
    }
}
