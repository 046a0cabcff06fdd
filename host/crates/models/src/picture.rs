//! Pictures in requests: invalid ones are refused before they are sent.

use longhaul_core::model::{MessageRole, ModelError};

/// No provider accepts a picture from an assistant.
pub(crate) fn check_speaker(speaker: MessageRole) -> Result<(), ModelError> {
    if speaker == MessageRole::Assistant {
        let text = "an assistant's message has a picture; give pictures in a user's message";
        return Err(ModelError::Invalid(text.to_owned()));
    }
    Ok(())
}

/// `media_type` is guest-controlled and becomes part of an address.
pub(crate) fn check_media_type(media_type: &str) -> Result<(), ModelError> {
    let subtype = media_type.strip_prefix("image/").unwrap_or_default();
    let fine = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'+' | b'-');
    if subtype.is_empty() || !subtype.bytes().all(fine) {
        let text = format!("a picture's type is `{media_type:.40}`; give for example `image/png`");
        return Err(ModelError::Invalid(text));
    }
    Ok(())
}
