//! Replies in JSON: one value, something that was made, a page of a list.
//!
//! A value that cannot be written is a fault of ours and becomes a problem; no half of it is sent.

use super::input::PageParams;
use super::problem::Problem;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use longhaul_api::wire::PageWindow;
use serde::Serialize;

pub use longhaul_api::wire::Page;

/// A reply in JSON, or a problem.
pub type ApiResult<T> = Result<Out<T>, Problem>;

/// A reply in JSON, with the status 200.
pub struct Out<T>(pub T);

/// A reply about something that was made, with the status 201.
pub struct CreatedResponse<T> {
    /// The thing.
    pub told: T,
    /// Its path, for the header `Location`.
    pub location: Option<String>,
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

impl<T: Serialize> IntoResponse for CreatedResponse<T> {
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

/// A response of JSON that is written already.
pub fn json(status: StatusCode, text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl From<PageParams> for PageWindow {
    fn from(PageParams { limit, offset }: PageParams) -> Self {
        Self { limit, offset }
    }
}
