//! One connection to a server, shared by all who ask, and made again when it breaks.

use crate::RedisError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue};
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// The connection, once there is one.
pub(crate) struct Link {
    client: Client,
    open: Mutex<Option<MultiplexedConnection>>,
}

impl Link {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, open: Mutex::default() }
    }

    /// Asks for something that may be asked twice: a connection that broke since the last call is made anew.
    pub(crate) async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, RedisError> {
        match self.ask_once(command).await {
            Err(RedisError::Unavailable(_)) => self.ask_once(command).await,
            other => other,
        }
    }

    /// Asks for something whose answer depends on how often it was asked.
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
