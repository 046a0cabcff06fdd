//! The settings checked, and the address of objects taken apart. It holds no key, and nothing of it is a secret.

use crate::config::{ContentConfig, refused};
use longhaul_core::store::StoreError;
use reqwest::Url;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::{Component, PathBuf};

/// The bounds of the least size of content outside of the database, in bytes. Below the least of them a row is smaller
/// than what an object costs.
const BYTES_MIN: RangeInclusive<u64> = 4_096..=67_108_864;

/// The bounds of the grace of objects, in seconds. An upload with all of its repetitions ends within the shortest.
const GRACE_S: RangeInclusive<u64> = 3_600..=31_536_000;

/// The region that requests are signed for where none is named: storage of others takes any.
const REGION: &str = "us-east-1";

/// The lengths of the name of a bucket.
const BUCKET_BYTES: RangeInclusive<usize> = 3..=63;

impl ContentConfig {
    /// Refuses invalid settings, without a connection.
    ///
    /// # Errors
    /// [`StoreError::Refused`].
    pub fn check(&self) -> Result<(), StoreError> {
        Place::of(self)?;
        for (name, value, range) in [("bytes_min", self.bytes_min, BYTES_MIN), ("grace_s", self.grace_s, GRACE_S)] {
            if !range.contains(&value) {
                let (least, most) = (range.start(), range.end());
                return Err(refused(
                    format!("content.{name} = {value} is out of range"),
                    &format!("write {least} to {most}"),
                ));
            }
        }
        Ok(())
    }
}

/// The place of objects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A directory.
    Directory(PathBuf),
    /// A bucket.
    Bucket(Bucket),
}

/// A bucket, and how it is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub(crate) name: String,
    /// The part before each name; empty where there is none.
    pub(crate) prefix: String,
    pub(crate) endpoint: Option<Url>,
    pub(crate) region: String,
    /// The variable with the id of the key.
    pub(crate) access_key_env: String,
    /// The variable with the key.
    pub(crate) secret_key_env: String,
}

impl Place {
    /// The place that settings name.
    pub(crate) fn of(config: &ContentConfig) -> Result<Self, StoreError> {
        if let Some(path) = config.url.strip_prefix("file://") {
            return directory(config, path);
        }
        if let Some(path) = config.url.strip_prefix("s3://") {
            return bucket(config, path).map(Self::Bucket);
        }
        Err(refused(
            "content.url is no address of a directory or of a bucket",
            "write file:///DIRECTORY or s3://BUCKET/PREFIX",
        ))
    }
}

impl Bucket {
    /// True where content is sent in the clear.
    pub(crate) fn is_clear(&self) -> bool {
        self.endpoint.as_ref().is_some_and(|endpoint| endpoint.scheme() == "http")
    }

    /// True where the storage is on this machine, and is reached through no proxy of the environment.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.endpoint.as_ref().and_then(Url::host_str).unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

fn directory(config: &ContentConfig, path: &str) -> Result<Place, StoreError> {
    let directory = PathBuf::from(path);
    let is_plain = directory.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !directory.is_absolute() || !is_plain || path.contains(['?', '#', '%']) {
        let detail = format!("content.url `{}` names no directory", config.url);
        return Err(refused(detail, "write its absolute path: file:///srv/longhaul-content"));
    }
    let of_s3 = [&config.endpoint, &config.region, &config.access_key_env, &config.secret_key_env];
    if of_s3.into_iter().any(Option::is_some) {
        return Err(refused(
            "content.endpoint, content.region and the names of keys are for s3://, and content.url is a directory",
            "remove them",
        ));
    }
    Ok(Place::Directory(directory))
}

fn bucket(config: &ContentConfig, path: &str) -> Result<Bucket, StoreError> {
    let (name, prefix) = path.split_once('/').unwrap_or((path, ""));
    let is_of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    if !BUCKET_BYTES.contains(&name.len()) || !name.bytes().all(is_of_name) {
        // A key may have been written before the name.
        let shown = if path.contains('@') { "s3://..." } else { config.url.as_str() };
        return Err(refused(
            format!("content.url `{shown}` names no bucket"),
            "write s3://BUCKET/PREFIX, the bucket in lower case, and keys nowhere but in the environment",
        ));
    }
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let is_of_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=');
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(is_of_part);
    if !prefix.is_empty() && !prefix.split('/').all(is_part) {
        return Err(refused(
            format!("content.url `{}` has a prefix that is no plain path", config.url),
            "write names of letters, digits, `-`, `_`, `.` and `=`, separated by `/`",
        ));
    }
    let (Some(access_key_env), Some(secret_key_env)) = (&config.access_key_env, &config.secret_key_env) else {
        return Err(refused(
            "content.url is a bucket, which needs content.access_key_env and content.secret_key_env",
            "name the two variables of the environment that hold the key",
        ));
    };
    for (setting, name) in [("access_key_env", access_key_env), ("secret_key_env", secret_key_env)] {
        if !is_variable(name) {
            // It may be the key itself, so it is not repeated.
            return Err(refused(
                format!("content.{setting} is no name of a variable"),
                "write one of letters, digits and `_`, and export the key under it",
            ));
        }
    }
    let region = config.region.as_deref().unwrap_or(REGION);
    if region.is_empty() || !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        // Without an endpoint it becomes a part of a host's name.
        return Err(refused("content.region is no name of a region", "write one of letters, digits and `-`"));
    }
    Ok(Bucket {
        name: name.to_owned(),
        prefix: prefix.to_owned(),
        endpoint: config.endpoint.as_deref().map(endpoint).transpose()?,
        region: region.to_owned(),
        access_key_env: access_key_env.clone(),
        secret_key_env: secret_key_env.clone(),
    })
}

fn is_variable(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_of_name) && name.bytes().next().is_some_and(|byte| !byte.is_ascii_digit())
}

/// The address of storage: a scheme, a host and a port alone.
fn endpoint(text: &str) -> Result<Url, StoreError> {
    let parsed = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
    });
    // The text may hold a key, so it is not repeated.
    parsed.ok_or_else(|| refused("content.endpoint is no address of storage", "write https://HOST:PORT"))
}
