//! Refusals of the proxy, as the agent is told them.
//!
//! The browser makes requests for itself too, such as one that connects to a search engine ahead of time. The proxy
//! refuses them like those of a page, so only the refusal of a document's own host and port tells why it is not there.
//! A page that was answered is there, whatever else of its host was refused, unless the refusal is what was answered.

use crate::error::SAID_BYTES_MAX;
use longhaul_core::text::truncate;
use longhaul_egress::RefusedRequest;

/// Takes the refusal of the request for the document at `address`, which after redirects is the last one.
pub(crate) fn take_of_document(refused: &mut Vec<RefusedRequest>, address: &str) -> Option<RefusedRequest> {
    take_answer(refused, address).or_else(|| take(refused, |request| request.is_for(address)))
}

/// Takes the refusal that was the answer to the request for the document at `address`.
pub(crate) fn take_answer(refused: &mut Vec<RefusedRequest>, address: &str) -> Option<RefusedRequest> {
    take(refused, |request| request.is_answer_at(address))
}

fn take(refused: &mut Vec<RefusedRequest>, is_it: impl Fn(&RefusedRequest) -> bool) -> Option<RefusedRequest> {
    let at = refused.iter().position(is_it)?;
    Some(refused.remove(at))
}

/// The refusals as texts, each once.
pub(crate) fn texts(refused: &[RefusedRequest]) -> Vec<String> {
    let mut texts = Vec::new();
    for request in refused {
        let text = truncate(&request.to_string(), SAID_BYTES_MAX);
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Denial;
    use longhaul_egress::EgressError;

    /// Refusals of requests for these addresses, in this order.
    fn refused(addresses: &[&str]) -> Vec<RefusedRequest> {
        let of = |address: &&str| {
            let reason = format!("this plugin may not reach `{address}`");
            let denial = Denial { reason, fix: format!("add {address}") };
            RefusedRequest::new(&address.parse().expect("an address"), EgressError::Denied(denial))
        };
        addresses.iter().map(of).collect()
    }

    /// An agent was told to have the search engine granted, to which its page had no part.
    #[test]
    fn a_document_is_refused_for_its_own_host_whatever_the_browser_asked_for_before() {
        for (requested, document) in [
            ("http://169.254.169.254/latest/meta-data/", "http://169.254.169.254/latest/meta-data/"),
            ("docs.example.com:443", "https://docs.example.com/page?q#there"),
            ("docs.example.com:8443", "https://docs.example.com:8443/"),
        ] {
            let mut refused = refused(&["www.google.com:443", requested, "docs.example.com:80"]);
            let taken = take_of_document(&mut refused, document).expect("the refusal of the document");
            assert!(taken.to_string().contains(requested), "{document}: {taken}");
            assert!(texts(&refused)[0].contains("www.google.com"), "{document}: {refused:?}");
        }
    }

    #[test]
    fn what_the_browser_asked_for_by_itself_is_no_reason_for_a_document() {
        let mut refused = refused(&["www.google.com:443", "docs.example.com:80"]);
        for document in ["https://docs.example.com/", "http://www.google.com/", "https://google.com/", "about:blank"] {
            assert!(take_of_document(&mut refused, document).is_none(), "{document}");
        }
        assert_eq!(refused.len(), 2);
    }

    /// A server answered 403, and the proxy refused a WebSocket of that page: the page was told as one that may not be
    /// reached.
    #[test]
    fn a_page_that_its_server_refuses_is_not_told_as_refused_here() {
        let mut refused = refused(&["docs.example.com:80", "http://docs.example.com/sent?q"]);
        for document in ["http://docs.example.com/page", "http://docs.example.com/sent"] {
            assert!(take_answer(&mut refused, document).is_none(), "{document}");
        }
        let taken = take_answer(&mut refused, "http://docs.example.com/sent?q#part").expect("it is the answer");
        assert!(taken.to_string().contains("/sent?q"), "{taken}");
        assert_eq!(refused.len(), 1);
    }

    #[test]
    fn of_the_refusals_of_one_host_that_of_the_document_itself_is_told() {
        let mut refused = refused(&["http://docs.example.com/other", "http://docs.example.com/page"]);
        let taken = take_of_document(&mut refused, "http://docs.example.com/page").expect("it was refused");
        assert!(taken.to_string().contains("/page"), "{taken}");
    }

    #[test]
    fn refusals_that_read_alike_are_told_once() {
        let of = |address: &str| RefusedRequest::new(&address.parse().expect("an address"), EgressError::BadAddress);
        assert_eq!(texts(&[of("a.com:443"), of("b.com:443")]), [EgressError::BadAddress.to_string()]);
    }
}
