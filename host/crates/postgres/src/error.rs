//! The meaning of the client's and the server's errors: whether a statement was carried out, and what a person can do.

use longhaul_core::store::StoreError;
use std::error::Error as _;
use std::io;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// The effect of an error on the statement that met it.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Nothing was written, and the same statement may pass when it is sent again.
    Again(StoreError),
    /// Nothing was written, since another statement changed the same rows at the same time. It is done now, so the same
    /// statement may pass at once.
    Overtaken(StoreError),
    /// The connection broke or did not answer. Whether the statement was carried out, nobody knows.
    Unknown(StoreError),
    /// Nothing was written, and the same statement would fail again.
    Final(StoreError),
}

impl Trouble {
    /// The meaning of an error for whoever needed a connection: rights that are missing stay missing.
    pub(crate) fn of_connection(error: StoreError) -> Self {
        match error {
            refused @ StoreError::Refused { .. } => Self::Final(refused),
            other => Self::Again(other),
        }
    }

    pub(crate) fn into_error(self) -> StoreError {
        match self {
            Self::Again(error) | Self::Overtaken(error) | Self::Unknown(error) | Self::Final(error) => error,
        }
    }
}

/// The place of a store in errors: the address without a password.
#[derive(Clone, Debug)]
pub(crate) struct Place(pub(crate) String);

impl Place {
    /// The meaning of an error of a statement.
    pub(crate) fn trouble(&self, error: &Error) -> Trouble {
        let detail = told(error);
        let Some(code) = error.code() else {
            return if is_of_connection(error) {
                Trouble::Unknown(self.unreachable(detail))
            } else {
                Trouble::Final(self.failed(detail))
            };
        };
        if is_of_statement_mode(&detail) {
            return Trouble::Final(self.statement_mode());
        }
        if is_of_outage(code) {
            return Trouble::Unknown(self.unreachable(detail));
        }
        if is_of_writers(code) {
            return Trouble::Overtaken(self.failed(detail));
        }
        if is_of_moment(code) {
            return Trouble::Again(self.failed(detail));
        }
        if *code == SqlState::DISK_FULL {
            return Trouble::Final(StoreError::Full { path: self.0.clone() });
        }
        Trouble::Final(self.refused(code, &detail).unwrap_or_else(|| self.failed(detail)))
    }

    /// The store's error for a connection that could not be made.
    pub(crate) fn no_connection(&self, error: &Error) -> StoreError {
        match self.trouble(error) {
            Trouble::Final(refused @ StoreError::Refused { .. }) => refused,
            // The client itself has no way in: no password, no method that both know, no TLS on the other side.
            Trouble::Final(_) if error.code().is_none() => StoreError::Refused {
                detail: format!("the server of the store in `{}` cannot be used: {}", self.0, told(error)),
                remedy: "check url and the variable of password_env".to_owned(),
            },
            _ => self.unreachable(told(error)),
        }
    }

    /// The error for a store that another process owns.
    pub(crate) fn held(&self) -> StoreError {
        StoreError::Held { path: self.0.clone() }
    }

    pub(crate) fn unreachable(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Unreachable { path: self.0.clone(), detail: detail.into() }
    }

    pub(crate) fn failed(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Failed { path: self.0.clone(), detail: detail.into() }
    }

    /// The error for content whose object was condemned before the row that names it came.
    pub(crate) fn overdue(&self) -> StoreError {
        self.failed(
            "its content waited in object storage for longer than content.grace_s, and nothing was written; try again",
        )
    }

    /// The error for a pooler that gives each statement a session of its own.
    pub(crate) fn statement_mode(&self) -> StoreError {
        StoreError::Refused {
            detail: format!(
                "the pooler before the store in `{}` is in statement mode, which takes no transaction, and each commit \
                 is one",
                self.0
            ),
            remedy: "set pool_mode = transaction, or session, for this database, or write the address of the server \
                     itself in url"
                .to_owned(),
        }
    }

    pub(crate) fn damaged(&self, detail: impl Into<String>) -> StoreError {
        StoreError::Damaged { path: self.0.clone(), detail: detail.into() }
    }

    /// The error for rights and names that somebody has to give.
    fn refused(&self, code: &SqlState, detail: &str) -> Option<StoreError> {
        let class = code.code().get(..2).unwrap_or_default();
        let remedy = match class {
            "28" => "check the user in url and the variable of password_env, and the server's pg_hba.conf",
            _ if *code == SqlState::INVALID_CATALOG_NAME => "create it, or correct url: CREATE DATABASE",
            _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
                "grant the user the right to make a schema in the database, or make it the owner of the schema: \
                 CREATE SCHEMA ... AUTHORIZATION"
            }
            _ => return None,
        };
        Some(StoreError::Refused {
            detail: format!("the server refuses the store in `{}`: {detail}", self.0),
            remedy: remedy.to_owned(),
        })
    }
}

/// The text of an error with its causes. None of them has a password in it.
pub(crate) fn told(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        return format!("{}{hint} [{}]", error.message(), error.code().code());
    }
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        told = format!("{told}: {next}");
        cause = next.source();
    }
    told
}

/// True for errors of the connection: it was closed, the system reported it, or the messages made no sense. Values that
/// cannot be encoded are no such errors, and are not sent.
fn is_of_connection(error: &Error) -> bool {
    match error.source() {
        None => true,
        Some(cause) => {
            error.is_closed()
                || cause.downcast_ref::<io::Error>().is_some_and(|why| why.kind() != io::ErrorKind::InvalidInput)
        }
    }
}

/// True for a server that stops, starts or has lost its disk, and for connections that it does not take.
fn is_of_outage(code: &SqlState) -> bool {
    let code = code.code();
    code.starts_with("08") || code.starts_with("58") || matches!(code, "53300" | "57P01" | "57P02" | "57P03" | "57P05")
}

/// True for the error by which PgBouncer ends the connection of whoever begins a transaction in statement mode. It has
/// the code of many others.
fn is_of_statement_mode(told: &str) -> bool {
    told.contains("not allowed in statement pooling mode")
}

/// True for errors of statements that change the same rows at the same time: one came first, or each waited for the
/// other.
fn is_of_writers(code: &SqlState) -> bool {
    matches!(code.code(), "40001" | "40P01")
}

/// True for errors of the moment: a lock, a cancelled statement, a server that is a replica just now.
fn is_of_moment(code: &SqlState) -> bool {
    matches!(code.code(), "55P03" | "57014" | "25006" | "55000")
}
