//! The OpenAPI document: made of the handlers and the types, and completed with scopes and common problems.

use super::problem::{MEDIA_TYPE, Problem};
use super::scopes::OperationScopes;
use http::Method;
use utoipa::PartialSchema as _;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
};

/// Name of the security scheme.
const SCHEME: &str = "token";

/// Problems that any operation may answer.
const PROBLEMS: &[(&str, &str)] = &[
    ("400", "The request cannot be understood"),
    ("401", "A token is needed"),
    ("403", "The token, or the page that asks, is not allowed to"),
    ("404", "There is no such thing"),
    ("405", "Not with this method"),
    ("408", "The request came too slowly"),
    ("409", "Conflict with the current state"),
    ("412", "It was changed meanwhile"),
    ("413", "The body is too large"),
    ("415", "The body is not JSON"),
    ("422", "A parameter or a field is wrong"),
    ("428", "The version that is meant is needed"),
    ("429", "Too many requests"),
    ("503", "Not now"),
];

/// A document without operations.
pub fn empty() -> OpenApi {
    let info = InfoBuilder::new().title("Longhaul").version(env!("CARGO_PKG_VERSION")).description(Some(
        "Projects, runs, events, approvals and what agents know. Errors are `application/problem+json`. \
        Times are milliseconds since 1970-01-01 UTC.",
    ));
    let components = ComponentsBuilder::new()
        .schema("Problem", Problem::schema())
        .security_scheme(
            SCHEME,
            SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("lh_...").build()),
        )
        .build();
    OpenApiBuilder::new().info(info.build()).components(Some(components)).build()
}

/// Adds the scope of each operation, and the problems that any may answer.
pub fn complete(document: &mut OpenApi, scopes: &OperationScopes) {
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            // A handler's own name is unique among those of its tag alone.
            let tag = operation.tags.as_ref().and_then(|tags| tags.first()).cloned().unwrap_or_default();
            operation.operation_id = operation.operation_id.take().map(|name| format!("{tag}_{name}"));
            if let Some(scope) = scopes.of(&method, path) {
                let requirement = SecurityRequirement::new(SCHEME, [scope.as_str()]);
                operation.security = Some(vec![requirement]);
                let needs = format!("Needs the scope `{}`.", scope.as_str());
                let before = operation.description.take();
                operation.description = Some(before.map_or(needs.clone(), |before| format!("{before}\n\n{needs}")));
            }
            for (status, text) in PROBLEMS {
                let known = &mut operation.responses.responses;
                known.entry((*status).to_owned()).or_insert_with(|| RefOr::T(problem(text)));
            }
        }
    }
}

fn problem(text: &str) -> utoipa::openapi::Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
    ResponseBuilder::new().description(text).content(MEDIA_TYPE, content).build()
}

/// The operations of a path, with their methods.
pub fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let PathItem { get, put, post, patch, delete, head, options, trace, .. } = item;
    let all = [
        (Method::GET, get),
        (Method::PUT, put),
        (Method::POST, post),
        (Method::PATCH, patch),
        (Method::DELETE, delete),
        (Method::HEAD, head),
        (Method::OPTIONS, options),
        (Method::TRACE, trace),
    ];
    all.into_iter().filter_map(|(method, operation)| operation.as_mut().map(|operation| (method, operation)))
}
