//! An endpoint's own account of a reply: the model that it names, and its id of the reply.
//!
//! Both are for telemetry, so nothing is refused here: an account of an unexpected type is left out, and a long one is
//! cut. Nothing else may depend on it.

use crate::secret::KeyRedactor;
use longhaul_core::model::ReplyEndpoint;
use longhaul_core::text::truncate;
use reqwest::Url;
use serde_json::Value;

/// Bytes of a name or an id that are kept.
const NAME_BYTES_MAX: usize = 120;

/// The account, under assembly. The first name and the first id count.
#[derive(Default)]
pub(crate) struct EndpointAccount {
    model: Option<String>,
    id: Option<String>,
}

impl EndpointAccount {
    /// Takes the fields of one object of a reply.
    pub(crate) fn take(&mut self, model: Option<&Value>, id: Option<&Value>) {
        let text = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        if self.model.is_none() {
            self.model = text(model);
        }
        if self.id.is_none() {
            self.id = text(id);
        }
    }

    /// The endpoint at `base_url`, with its account, from which `redactor` takes the key.
    pub(crate) fn endpoint(self, base_url: &str, redactor: &KeyRedactor) -> ReplyEndpoint {
        // Cut afterwards: the beginning of a key would be found no more.
        let clean = |text: String| truncate(&redactor.whole(&text), NAME_BYTES_MAX);
        let url = Url::parse(base_url).ok();
        let server = url.as_ref().and_then(Url::host_str);
        ReplyEndpoint {
            model: self.model.map(clean),
            id: self.id.map(clean),
            server: server.map(|host| host.trim_matches(['[', ']']).to_owned()),
            port: url.as_ref().and_then(Url::port_or_known_default),
            streamed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_account_of_an_endpoint_is_short_and_of_the_expected_types() {
        let mut account = EndpointAccount::default();
        account.take(Some(&json!(7)), Some(&json!("")));
        account.take(Some(&json!("m-2026-01-01")), Some(&json!("x".repeat(500))));
        account.take(Some(&json!("later")), Some(&json!("later")));
        let endpoint = account.endpoint("https://[::1]/v1", &KeyRedactor::new(None));
        assert_eq!(endpoint.model.as_deref(), Some("m-2026-01-01"));
        assert!(endpoint.id.is_some_and(|id| id.len() < 200));
        assert_eq!((endpoint.server.as_deref(), endpoint.port), (Some("::1"), Some(443)));
    }

    #[test]
    fn an_address_that_is_none_leaves_the_server_out() {
        let endpoint = EndpointAccount::default().endpoint("not an address", &KeyRedactor::new(None));
        assert_eq!(endpoint, ReplyEndpoint::default());
    }
}
