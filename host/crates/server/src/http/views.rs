//! The types of answers on the wire, apart from the types inside, so that each can change without the other.
//!
//! Their comments are published, as the descriptions of the OpenAPI document.

pub mod agents;
pub mod approvals;
pub mod events;
pub mod features;
pub mod journal;
pub mod knowledge;
pub mod resources;
pub mod runs;
pub mod schedules;
pub mod spent;

/// Makes an enum for the wire, with the cases of an enum inside and the conversions between the two.
macro_rules! words {
    ($(#[$attribute:meta])* $name:ident of $from:path as $inner:ident { $($(#[$about:meta])* $word:ident),* $(,)? }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[$about])* $word),* }

        use $from as $inner;

        impl From<$inner> for $name {
            fn from(inner: $inner) -> Self {
                match inner { $($inner::$word => Self::$word),* }
            }
        }

        impl From<$name> for $inner {
            fn from(outer: $name) -> Self {
                match outer { $($name::$word => Self::$word),* }
            }
        }
    };
}
pub(super) use words;
