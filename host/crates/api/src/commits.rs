//! The request for the changes of one commit of a run. The list of commits is with the runs.

use crate::runs::RunRef;
use serde::{Deserialize, Serialize};

/// Show the changes of a commit of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowCommit {
    /// The run.
    pub run: RunRef,
    /// The id of the commit, or a unique beginning of it: 4 to 40 hexadecimal digits.
    pub commit: String,
}
