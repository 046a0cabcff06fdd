//! The tool `fetch-image`: a picture from hosts that the operator granted, as a data URL.
//!
//! The first bytes of an image decide its type, and not the server. The tool refuses other types than PNG, JPEG, WebP
//! and GIF, and images with more bytes or pixels than allowed. It never decodes an image: it reads only the size.
//! Redirects go through the same gates as the first request.

#[path = "../../http-fetch/src/exchange.rs"]
mod exchange;

use base64::Engine as _;
use exchange::{Bounds, Method, Outgoing, failed};
use longhaul_sdk::tool::CallContext;
use longhaul_sdk::tools::ToolError;
use longhaul_sdk::{Functions, json, schema};
use serde::Deserialize;
use serde_json::{Value, json};

/// The most that the operator can ask for: as a data URL it is a third more, and one answer has 4 MiB.
const BODY_BYTES_MAX: usize = 3_000_000;

/// The most pixels of an image: decoding takes four bytes for each.
const PIXELS_MAX: u64 = 64_000_000;

fn functions() -> Functions {
    let url = schema::text().chars(8, 8_192).about("https:// or http://");
    let fetch = schema::object().required("url", url);
    Functions::new("fetch-image", "Fetches a picture.").read_only("fetch", "Fetches a picture.", fetch, fetch_it)
}

longhaul_sdk::export_functions!(functions);

#[derive(Deserialize)]
struct Fetch {
    url: String,
}

/// Under `[tools.fetch-image.settings]` of `longhaul.toml`.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// Bytes of a picture. Default 2 MiB, at most 3 000 000.
    body_bytes_max: usize,
    /// Default 5, at most 10.
    redirects_max: u32,
    /// Longest wait in milliseconds for the connection, for the first byte and for each further one. Default 15 000.
    timeout_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { body_bytes_max: 2 << 20, redirects_max: 5, timeout_ms: 15_000 }
    }
}

fn fetch_it(asked: Fetch, context: &CallContext) -> Result<Value, ToolError> {
    let settings: Settings = json::read("settings of the tool `fetch-image`", &context.settings)?;
    let bounds = Bounds {
        body_bytes_max: settings.body_bytes_max.clamp(1, BODY_BYTES_MAX),
        redirects_max: settings.redirects_max.min(10),
        timeout_ms: settings.timeout_ms.clamp(1, context.remaining_ms.max(1).into()),
    };
    let headers = vec![("accept".to_owned(), "image/png, image/jpeg, image/webp, image/gif".to_owned())];
    let fetched = exchange::fetch(Outgoing { method: Method::Get, url: asked.url, headers, body: None }, bounds)?;
    if fetched.status != 200 {
        return Err(failed(format!("`{}` answered with status {}", json::cut(&fetched.url, 200), fetched.status)));
    }
    if fetched.is_cut {
        return Err(failed(format!("the picture has more than body_bytes_max {} bytes", bounds.body_bytes_max)));
    }
    let (media_type, width, height) = picture(&fetched.body).map_err(failed)?;
    let data = base64::engine::general_purpose::STANDARD.encode(&fetched.body);
    Ok(json!({
        "url": fetched.url,
        "media_type": media_type,
        "served_as": json::cut(&fetched.content_type, 100),
        "bytes": fetched.body.len(),
        "width": width,
        "height": height,
        "data_url": format!("data:{media_type};base64,{data}"),
    }))
}

/// The type and the size of an image.
fn picture(bytes: &[u8]) -> Result<(&'static str, u64, u64), String> {
    use imagesize::ImageType;
    let kind = imagesize::image_type(bytes).map_err(|_| "these bytes are no picture".to_owned())?;
    let media_type = match kind {
        ImageType::Png => "image/png",
        ImageType::Jpeg => "image/jpeg",
        ImageType::Webp => "image/webp",
        ImageType::Gif => "image/gif",
        _ => return Err("this kind of picture is not taken; take PNG, JPEG, WebP or GIF".to_owned()),
    };
    let size = imagesize::blob_size(bytes).map_err(|_| format!("this `{media_type}` does not say how large it is"))?;
    let (width, height) = (size.width as u64, size.height as u64);
    let pixels = width.saturating_mul(height);
    if pixels == 0 || pixels > PIXELS_MAX {
        return Err(format!("a picture of {width} x {height} pixels is not taken; {PIXELS_MAX} are the most"));
    }
    Ok((media_type, width, height))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a PNG of this size.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
        bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn a_picture_is_what_its_bytes_say() {
        let check = |bytes: &[u8], expected: &str| {
            let told =
                picture(bytes).map_or_else(|why| why, |(kind, width, height)| format!("{kind} {width} {height}"));
            assert!(told.contains(expected), "{told}");
        };
        check(&png(3, 2), "image/png 3 2");
        check(b"GIF89a\x05\0\x04\0\0\0\0", "image/gif 5 4");
        check(&png(100_000, 100_000), "is not taken");
        check(&png(0, 5), "is not taken");
        check(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "no picture");
        check(b"<html>", "no picture");
        check(b"", "no picture");
        check(b"BM\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", "no");
    }
}
