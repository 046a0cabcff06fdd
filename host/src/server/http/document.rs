//! The description of the API as OpenAPI: made of the handlers and the types, and completed with what holds for all.

use super::problem::{MEDIA_TYPE, Problem};
use super::scopes;
use http::Method;
use utoipa::PartialSchema as _;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
};

/// The name of the way to say who one is.
const SCHEME: &str = "token";

/// What any operation may answer when something is wrong.
const PROBLEMS: &[(&str, &str)] = &[
    ("400", "The request cannot be understood"),
    ("401", "A token is needed"),
    ("403", "The token, or the page that asks, is not allowed to"),
    ("404", "There is no such thing"),
    ("405", "Not with this method"),
    ("408", "The request came too slowly"),
    ("409", "Not as things stand"),
    ("412", "It was changed meanwhile"),
    ("413", "The body is too large"),
    ("415", "The body is not JSON"),
    ("422", "A parameter or a field is wrong"),
    ("428", "The version that is meant is needed"),
    ("429", "Too many requests"),
    ("503", "Not now"),
];

/// A description without routes.
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

/// Adds what holds for all: scopes, and the problems that any may answer.
pub fn complete(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            // A handler's own name is unique among those of its tag alone.
            let tag = operation.tags.as_ref().and_then(|tags| tags.first()).cloned().unwrap_or_default();
            operation.operation_id = operation.operation_id.take().map(|name| format!("{tag}_{name}"));
            let scope = scopes::of(&method, path);
            if let Some(scope) = scope {
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

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let PathItem { get, put, post, delete, .. } = item;
    let all = [(Method::GET, get), (Method::PUT, put), (Method::POST, post), (Method::DELETE, delete)];
    all.into_iter().filter_map(|(method, operation)| operation.as_mut().map(|operation| (method, operation)))
}

#[cfg(test)]
mod tests {
    use super::super::gate::needs_token;
    use super::super::routes;
    use super::*;

    #[test]
    fn every_route_is_in_the_table_of_scopes_and_in_the_description() {
        let mut document = routes::api().into_openapi();
        complete(&mut document);
        let mut described: Vec<(String, String)> = Vec::new();
        let mut names = std::collections::BTreeSet::new();
        for (path, item) in &mut document.paths.paths {
            for (method, operation) in operations(item) {
                let is_open = !needs_token(path);
                assert_eq!(operation.security.is_none(), is_open, "{method} {path} is not in the table of scopes");
                assert!(operation.summary.is_some(), "{method} {path} says what it is for");
                let name = operation.operation_id.clone().unwrap_or_default();
                assert!(names.insert(name.clone()), "{method} {path}: `{name}` is another's name");
                if !is_open {
                    described.push((method.to_string(), path.clone()));
                }
            }
        }
        let own = ("GET".to_owned(), "/api/v1/openapi.json".to_owned());
        for (method, path, _) in scopes::TABLE {
            let route = ((*method).to_owned(), (*path).to_owned());
            assert!(described.contains(&route) || route == own, "{method} {path} is described");
        }
    }
}
