//! Replies of model endpoints.

use longhaul_models::hostile::{Protocol, read};

/// A stream of server-sent events, cut into pieces by the first two bytes, or a reply in one piece.
pub(crate) fn model_replies(bytes: &[u8]) {
    let [how, piece, body @ ..] = bytes else { return };
    let protocol = if how & 1 == 0 { Protocol::OpenAi } else { Protocol::Anthropic };
    let is_stream = how & 2 == 0;
    let at_once = read(protocol, is_stream, [body]);
    let pieces = read(protocol, is_stream, body.chunks(usize::from(*piece) + 1));
    assert_eq!(at_once, pieces, "a reply depends on where its bytes were split");
}
