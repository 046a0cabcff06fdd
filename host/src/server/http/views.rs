//! The types of answers: what is on the wire, apart from what is within, so that the one moves without the other.

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

/// An enum of words, made of one within whose cases have the same names.
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
