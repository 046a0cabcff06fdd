//! One connection to a server, shared by all callers, and opened again when it breaks.

use crate::config::{RedisConfig, RedisError};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, FromRedisValue, IntoConnectionInfo as _, TlsCertificates,
};
use std::path::Path;
use std::time::Duration;
use tokio::sync::Mutex;

/// The timeout for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// The timeout for an answer.
const ANSWER: Duration = Duration::from_secs(20);

/// The connection, after the first call.
pub(crate) struct Link {
    client: Client,
    open: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    fn new(client: Client) -> Self {
        Self { client, open: Mutex::default() }
    }

    /// Sends a command that may be repeated: a connection that broke since the last call is opened again.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        match self.ask_once(command).await {
            Err(RedisError::Unavailable(_)) => self.ask_once(command).await,
            other => other,
        }
    }

    /// Sends a command that must not be repeated, since its answer would change.
    pub(crate) async fn ask_once<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        let mut connection = self.connection().await?;
        let answered = command.query_async(&mut connection).await.map_err(RedisError::from);
        if matches!(answered, Err(RedisError::Unavailable(_))) {
            *self.open.lock().await = None;
        }
        answered
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RedisError> {
        let mut open = self.open.lock().await;
        if let Some(connection) = &*open {
            return Ok(connection.clone());
        }
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(CONNECT)).set_response_timeout(Some(ANSWER));
        let connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
        *open = Some(connection.clone());
        Ok(connection)
    }
}

impl RedisConfig {
    /// A link to the server. Nothing is sent yet.
    pub(crate) fn link(&self, variable: &dyn Fn(&str) -> Option<String>, base: &Path) -> Result<Link, RedisError> {
        self.check()?;
        let unusable = |error: redis::RedisError| RedisError::Config(error.to_string());
        let info = self.url.as_str().into_connection_info().map_err(unusable)?;
        let mut settings = info.redis_settings().clone();
        if let Some(user) = &self.user {
            settings = settings.set_username(user);
        }
        if let Some(name) = &self.password_env {
            let missing = || RedisError::Config(format!("password_env names `{name}`, which is not set; export it"));
            settings = settings.set_password(variable(name).ok_or_else(missing)?);
        }
        let is_tls = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let info = info.set_redis_settings(settings);
        let client = match &self.ca_file {
            _ if !is_tls => Client::open(info),
            None => Client::open(info),
            Some(file) => {
                let file = base.join(file);
                let read = std::fs::read(&file);
                let why = |error| RedisError::Config(format!("cannot read ca_file `{}`: {error}", file.display()));
                let certificates = TlsCertificates { client_tls: None, root_cert: Some(read.map_err(why)?) };
                Client::build_with_tls(info, certificates)
            }
        };
        Ok(Link::new(client.map_err(unusable)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_is_not_there_is_said_by_the_name_of_its_variable() {
        let config = RedisConfig { password_env: Some("SHELF_KEY".into()), ..RedisConfig::at("redis://h/") };
        let error = config.link(&|_| None, Path::new("/")).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some("password_env names `SHELF_KEY`, which is not set; export it"));
    }
}
