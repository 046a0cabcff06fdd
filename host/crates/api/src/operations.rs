//! The operations of the service, each declared once.
//!
//! A declaration by `operations!` names the method, its request, its response and its [`Handling`]. From it follow:
//!
//! | what | for whom |
//! |---|---|
//! | the trait of the resource, with one typed method an operation | the service, which implements it |
//! | the same trait for every [`Transport`] | callers: this is the client |
//! | [`Operation`] for each request | transports: the name on the wire, and the type of the response |
//! | [`handler`] | the owner of a data directory: the operation of a name on the wire |
//!
//! Requests and responses are types of the modules of their resource. This file opens no connection and answers nothing.

use crate::tokens::{AddToken, ListTokens, NewToken, RemoveToken, TokenList};
use longhaul_core::fault::{self, Fault};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::pin::Pin;

/// The request of one operation.
pub trait Operation: Clone + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The answer to it.
    type Response: Serialize + DeserializeOwned + Send + 'static;

    /// Name on the wire.
    const NAME: &'static str;

    /// How it is treated while its owner ends, and by whoever could repeat it.
    const HANDLING: Handling;

    /// Paths of the request that nothing behind checks to be absolute.
    fn paths(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Has a service carry it out.
    fn carry_out<S: Api>(self, service: &S) -> impl Future<Output = fault::Result<Self::Response>> + Send;
}

/// How an operation is treated while the owner of the data directory ends, and by whoever could repeat it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Carried out also while the owner hands over: a follower of a run looks at the outcome.
    Look,
    /// Not begun while the owner hands over. The same request may go to the next owner.
    Repeat,
    /// As [`Handling::Repeat`], but a second request would be carried out twice.
    Once,
    /// As [`Handling::Once`]. It may remove content that nothing names, so it is not among those that are about to name
    /// some.
    Maintain,
}

/// Carries requests to a service, and its responses back. A transport has all operations as methods.
pub trait Transport: Send + Sync {
    /// Sends a request, and waits for the response.
    fn call<O: Operation>(&self, request: O) -> impl Future<Output = fault::Result<O::Response>> + Send;
}

/// A request as it crosses a socket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OperationCall {
    /// The name of the operation.
    pub name: String,
    /// The request.
    pub request: Value,
}

impl OperationCall {
    /// The call of a request.
    ///
    /// # Errors
    /// When the request cannot be written as JSON.
    pub fn of<O: Operation>(request: &O) -> serde_json::Result<Self> {
        Ok(Self { name: O::NAME.to_owned(), request: serde_json::to_value(request)? })
    }
}

/// Carries out the operation of one name: reads its request, and writes its response.
pub type Handler<T> = for<'a> fn(&'a T, Value) -> PendingResponse<'a>;

/// The response of an operation that is being carried out.
pub type PendingResponse<'a> = Pin<Box<dyn Future<Output = fault::Result<Value>> + Send + 'a>>;

/// Carries out an operation whose request and response are JSON.
fn in_json<O: Operation, T: Transport>(transport: &T, request: Value) -> PendingResponse<'_> {
    Box::pin(async move {
        let request: O = serde_json::from_value(request).map_err(not_understood)?;
        Ok(serde_json::to_value(transport.call(request).await?)?)
    })
}

/// Without a code, so that callers of every version read it.
fn not_understood(error: serde_json::Error) -> Fault {
    Fault::msg(format!("the call is not understood ({error}); client and owner may be of different versions"))
}

/// Declares the operations of one resource. After the response stands the [`Handling`], and, for a request with paths, the
/// function that lists them.
macro_rules! operations {
    (
        $(#[$trait_meta:meta])*
        pub trait $resource:ident {
            $(
                $(#[$meta:meta])*
                fn $method:ident($request:ty) -> $response:ty, $handling:ident $(, paths $paths:path)?;
            )+
        }
    ) => {
        $(#[$trait_meta])*
        #[async_trait::async_trait]
        pub trait $resource: Send + Sync {
            $(
                $(#[$meta])*
                async fn $method(&self, request: $request) -> fault::Result<$response>;
            )+
        }

        #[async_trait::async_trait]
        impl<T: Transport> $resource for T {
            $(
                async fn $method(&self, request: $request) -> fault::Result<$response> {
                    self.call(request).await
                }
            )+
        }

        impl dyn $resource {
            /// The handler of the operation of a name, if it is one of these.
            fn handler<T: Transport>(name: &str) -> Option<Handler<T>> {
                match name {
                    $(stringify!($method) => Some(in_json::<$request, T> as Handler<T>),)+
                    _ => None,
                }
            }
        }

        $(
            impl Operation for $request {
                type Response = $response;

                const NAME: &'static str = stringify!($method);

                const HANDLING: Handling = Handling::$handling;

                $(
                    fn paths(&self) -> Vec<&Path> {
                        $paths(self)
                    }
                )?

                async fn carry_out<S: Api>(self, service: &S) -> fault::Result<$response> {
                    $resource::$method(service, self).await
                }
            }
        )+
    };
}

operations! {
    /// The tokens of the HTTP API.
    pub trait TokenOperations {
        /// Make a token. Its value is shown by this response alone.
        fn add_token(AddToken) -> NewToken, Once;
        /// All tokens by name, expired ones included.
        fn tokens(ListTokens) -> TokenList, Once;
        /// Revoke a token at once. The response lists it.
        fn remove_token(RemoveToken) -> TokenList, Once;
    }
}

/// All operations of the service.
pub trait Api: TokenOperations {}

impl<S: TokenOperations> Api for S {}

/// The handler of the operation of a name; none if there is no such operation.
pub fn handler<T: Transport>(name: &str) -> Option<Handler<T>> {
    <dyn TokenOperations>::handler(name)
}
