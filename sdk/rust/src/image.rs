//! Images in the outputs of tools, as data URLs.
//!
//! Only the four media types that every message may hold are images here, and only with complete data. Other texts stay
//! texts.

use crate::message_types::Image;

/// Media types that are images here.
const KINDS: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// Returns the image of a data URL such as `data:image/png;base64,...`. None: the text is not such a URL.
#[must_use]
pub fn of_data_url(text: &str) -> Option<Image> {
    let (media_type, data) = text.strip_prefix("data:")?.split_once(";base64,")?;
    KINDS.contains(&media_type).then_some(())?;
    Some(Image { media_type: media_type.to_owned(), data: decode(data.as_bytes())? })
}

/// Base64 with its padding, and nothing in between.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    if text.len() % 4 != 0 {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|byte| **byte == b'=').count();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text[..text.len() - padding].chunks(4) {
        let mut bits = 0_u32;
        for byte in four {
            bits = bits << 6 | u32::from(value(*byte)?);
        }
        bits <<= 6 * (4 - four.len());
        let [_, all @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(&all[..four.len() - 1]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_url_is_a_picture_and_other_texts_are_none() {
        let check = |text: &str, expected: Option<&[u8]>| {
            assert_eq!(of_data_url(text).map(|image| image.data).as_deref(), expected, "{text}");
        };
        check("data:image/png;base64,", Some(b""));
        check("data:image/png;base64,AQID", Some(&[1, 2, 3]));
        check("data:image/gif;base64,AQI=", Some(&[1, 2]));
        check("data:image/webp;base64,/w==", Some(&[255]));
        check("data:image/jpeg;base64,+/+/", Some(&[251, 255, 191]));
        for wrong in [
            "image/png;base64,AQID",
            "data:image/svg+xml;base64,AQID",
            "data:image/png;base64,AQ=D",
            "data:image/png;base64,AQI",
            "data:image/png,AQID",
            "data:image/png;base64,====",
        ] {
            check(wrong, None);
        }
    }
}
