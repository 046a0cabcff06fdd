//! The table `[store.content]` of `server.toml`: where large content is, and from which size on.

use longhaul_core::store::StoreError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Large content outside of the database, which keeps a small row for it: in a directory that all machines have, or in
/// object storage that speaks S3. Default: none; the database holds all content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContentConfig {
    /// `file:///DIRECTORY`, which exists on each machine and is the same on all of them, or `s3://BUCKET/PREFIX`, whose
    /// prefix may be left out. No two databases share one.
    pub url: String,
    /// The address of the storage, `https://HOST:PORT`; with `http` content is sent in the clear. Only with `s3`.
    /// Default: that of Amazon S3 in `region`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The region that requests are signed for. Only with `s3`. Default `us-east-1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The environment variable that holds the id of the access key. Needed with `s3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_key_env: Option<String>,
    /// The environment variable that holds the secret access key. Needed with `s3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_env: Option<String>,
    /// The length from which on content is outside of the database, in bytes. Default 262,144, from 4,096 to
    /// 67,108,864. What is stored already stays where it is.
    #[serde(default = "default_bytes_min")]
    #[schemars(range(min = 4_096, max = 67_108_864))]
    pub bytes_min: u64,
    /// The time for which an object that no row names is kept, in seconds: at least as long as a backup of the database
    /// may have to be restored. Default 86,400, from 3,600 to 31,536,000.
    #[serde(default = "default_grace_s")]
    #[schemars(range(min = 3_600, max = 31_536_000))]
    pub grace_s: u64,
}

fn default_bytes_min() -> u64 {
    262_144
}

fn default_grace_s() -> u64 {
    86_400
}

impl ContentConfig {
    /// Content at an address, with the defaults for all else.
    #[must_use]
    pub fn at(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            endpoint: None,
            region: None,
            access_key_env: None,
            secret_key_env: None,
            bytes_min: default_bytes_min(),
            grace_s: default_grace_s(),
        }
    }

    /// The time for which an object that no row names is kept.
    #[must_use]
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace_s)
    }
}

pub(crate) fn refused(detail: impl Into<String>, remedy: &str) -> StoreError {
    StoreError::Refused { detail: detail.into(), remedy: remedy.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl FnOnce(&mut ContentConfig), expected: &str) {
        let mut config = ContentConfig::at("s3://bucket/prefix");
        (config.access_key_env, config.secret_key_env) = (Some("ID".into()), Some("KEY".into()));
        change(&mut config);
        let said = config.check().map_err(|error| error.to_string()).err().unwrap_or_default();
        assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
        assert!(!said.contains("hunter2") && !said.contains('\n'), "{said}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_to_write() {
        check(|_| {}, "");
        check(|config| config.url = "s3://bucket".into(), "");
        check(|config| config.url = "s3://".into(), "`s3://` names no bucket");
        check(|config| config.url = "s3://Bucket".into(), "names no bucket");
        check(|config| config.url = "s3://bucket/a/../b".into(), "has a prefix that is no plain path");
        check(|config| config.url = "s3://bucket/a//b".into(), "has a prefix that is no plain path");
        check(|config| config.url = "https://h/b".into(), "is no address of a directory or of a bucket");
        check(|config| config.url = "s3://me:hunter2@h/b".into(), "names no bucket");
        check(|config| config.endpoint = Some("storage.example:9000".into()), "content.endpoint is no address");
        check(|config| config.endpoint = Some("https://me:hunter2@h".into()), "content.endpoint is no address");
        check(|config| config.endpoint = Some("https://h/path".into()), "content.endpoint is no address");
        check(|config| config.endpoint = Some("http://127.0.0.1:9000".into()), "");
        check(|config| config.endpoint = Some("https://storage.example:9000/".into()), "");
        check(|config| config.access_key_env = None, "needs content.access_key_env and content.secret_key_env");
        check(|config| config.secret_key_env = None, "needs content.access_key_env and content.secret_key_env");
        for wrong in ["", "hunter2/+x", "9KEY"] {
            check(
                |config| config.secret_key_env = Some(wrong.into()),
                "content.secret_key_env is no name of a variable",
            );
        }
        check(
            |config| config.access_key_env = Some("hunter2=".into()),
            "content.access_key_env is no name of a variable",
        );
        check(|config| config.region = Some("eu-central-1".into()), "");
        for wrong in ["", "eu.example/", "a@b"] {
            check(|config| config.region = Some(wrong.into()), "content.region is no name of a region");
        }
        for (bytes_min, expected) in [
            (4_095, "content.bytes_min = 4095 is out of range; write 4096 to 67108864"),
            (4_096, ""),
            (67_108_864, ""),
            (67_108_865, "content.bytes_min = 67108865"),
        ] {
            check(|config| config.bytes_min = bytes_min, expected);
        }
        check(|config| config.grace_s = 3_599, "content.grace_s = 3599 is out of range; write 3600 to 31536000");
    }

    #[test]
    fn a_directory_is_an_absolute_path_and_takes_no_keys() {
        let file = |url: &str| ContentConfig::at(url).check().map_err(|error| error.to_string());
        assert_eq!(file("file:///srv/longhaul-content"), Ok(()));
        for wrong in ["file://srv/content", "file://", "file:///srv/../etc", "file:///srv/a?b"] {
            assert!(file(wrong).is_err_and(|said| said.contains("names no directory")), "{wrong}");
        }
        let with_key = ContentConfig { access_key_env: Some("ID".into()), ..ContentConfig::at("file:///srv/content") };
        let said = with_key.check().map_err(|error| error.to_string());
        assert!(said.is_err_and(|said| said.contains("are for s3://")), "{with_key:?}");
    }
}
