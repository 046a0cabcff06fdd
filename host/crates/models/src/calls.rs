//! Tool calls in a reply, assembled from a hostile endpoint's pieces.

use crate::secret::KeyRedactor;
use crate::tool_names::Names;
use longhaul_core::model::RequestedCall;
use std::collections::HashSet;

/// Tool calls in one reply.
pub(crate) const MAX: usize = 128;

/// Longest id of a call that is kept, in bytes; providers' own have about 30.
const ID_BYTES_MAX: usize = 128;

/// A partial call.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartialCall {
    pub(crate) index: u64,
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON, as the model wrote it.
    pub(crate) arguments: String,
}

/// The calls in the host's form, with distinct ids.
pub(crate) fn requested(calls: &[PartialCall], stream_redactor: &KeyRedactor, names: &Names) -> Vec<RequestedCall> {
    let mut used = HashSet::new();
    let mut requested = Vec::new();
    for (position, call) in calls.iter().enumerate() {
        let (tool, function) = names.decode(&stream_redactor.whole(&call.name));
        let arguments = match call.arguments.trim() {
            "" => "{}".to_owned(),
            _ => stream_redactor.whole(&call.arguments),
        };
        requested.push(RequestedCall { id: id(call, position, stream_redactor, &mut used), tool, function, arguments });
    }
    requested
}

/// The endpoint's own id if it is valid, else a generated one.
fn id(call: &PartialCall, position: usize, stream_redactor: &KeyRedactor, used: &mut HashSet<String>) -> String {
    let own = stream_redactor.whole(&call.id);
    let usable = !own.is_empty() && own.len() <= ID_BYTES_MAX && own.bytes().all(|byte| byte.is_ascii_graphic());
    let mut id = if usable { own } else { format!("call_{position}") };
    while used.contains(&id) {
        id.push('_');
    }
    used.insert(id.clone());
    id
}
