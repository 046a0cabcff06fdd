//! The bombs of `tests/bombs`: fields of a component each. Most use a feature that is switched off here, or start as a
//! bomb.

use crate::bomb::Make::Text;
use crate::bomb::{BombForm, ExpectedEnd, Row};

/// A row whose text is the file of its name.
macro_rules! text {
    ($name:literal, $attacks:literal, $end:expr) => {
        ($name, $attacks, BombForm::Program, $end, Text(include_str!(concat!("../texts/", $name, ".wat"))))
    };
}

pub(crate) const BOMBS: &[Row] = &[
    text!("nothing", "Nothing: it shows that the limits of the corpus let a program through.", ExpectedEnd::Harmless),
    text!("memory-of-64-bits", "Addresses that no guard page covers.", ExpectedEnd::Invalid),
    text!("shared-memory", "A wait that no fuel ends.", ExpectedEnd::Invalid),
    text!("exceptions", "Unwinding, which is switched off.", ExpectedEnd::Invalid),
    text!("garbage-collection", "A heap of the host, which is switched off.", ExpectedEnd::Invalid),
    text!("stack-switching", "Stacks that a guest makes, which are switched off.", ExpectedEnd::Invalid),
    text!("typed-references", "Calls through references, which cost what calls cost.", ExpectedEnd::Harmless),
    text!("wide-arithmetic", "Instructions of 128 bits, which are switched off.", ExpectedEnd::Invalid),
    text!("shared-everything", "Globals that threads share, which are switched off.", ExpectedEnd::Invalid),
    text!(
        "asynchronous-export",
        "A callback of another type than the host calls, of which a stack overflowed.",
        ExpectedEnd::Invalid
    ),
    text!("stream-of-values", "Streams, whose tables the host would keep.", ExpectedEnd::Invalid),
    text!("future-of-a-value", "Futures, whose tables the host would keep.", ExpectedEnd::Invalid),
    text!("waitable-set", "Sets of what is waited for, which the host would keep.", ExpectedEnd::Invalid),
    text!("thread-index", "Threads of components, which are switched off.", ExpectedEnd::Invalid),
    text!("error-context", "Texts of errors, which the host would keep.", ExpectedEnd::Invalid),
    text!("encodings-that-conflict", "An adapter that is told two encodings.", ExpectedEnd::Invalid),
    text!("memory-that-is-missing", "An adapter that has no memory to write to.", ExpectedEnd::Invalid),
    text!("lift-of-another-type", "A call with other arguments than its function takes.", ExpectedEnd::Invalid),
    text!("resource-that-is-a-float", "A table of handles of another type.", ExpectedEnd::Invalid),
    text!("resource-of-another", "Handles that somebody else's table holds.", ExpectedEnd::Invalid),
    text!("destructor-of-another-type", "A call of a destructor with another argument.", ExpectedEnd::Invalid),
    text!("exports-that-conflict", "A reader that does not tell the two names apart.", ExpectedEnd::Invalid),
    text!("start-of-a-component", "A start that no limit was set for.", ExpectedEnd::Invalid),
    text!("instance-of-a-missing-module", "A linker that leaves an import empty.", ExpectedEnd::Invalid),
    text!("start-without-end", "Instantiation that does not return.", ExpectedEnd::CallCap("fuel_max")),
    text!("start-that-calls-itself", "The stack, during instantiation.", ExpectedEnd::CallCap("stack_bytes_max")),
    text!("start-that-traps", "Instantiation that fails half way.", ExpectedEnd::Trap),
    text!(
        "tail-calls-without-end",
        "Recursion that the end of the stack does not bound.",
        ExpectedEnd::CallCap("fuel_max")
    ),
    text!(
        "memory-of-a-gibibyte",
        "A memory that is asked for before anything runs.",
        ExpectedEnd::CallCap("memory_bytes_max")
    ),
    text!("memory-that-grows", "Memory, page by page.", ExpectedEnd::CallCap("memory_bytes_max")),
    text!(
        "table-past-the-limit",
        "A table that is asked for before anything runs.",
        ExpectedEnd::CallCap("table_elements_max")
    ),
    text!("table-that-grows", "A table, hundred by hundred.", ExpectedEnd::CallCap("table_elements_max")),
    text!("data-beyond-the-memory", "Bytes behind the end of a memory.", ExpectedEnd::Trap),
    text!("elements-beyond-the-table", "Functions behind the end of a table.", ExpectedEnd::Trap),
    text!(
        "handles-without-end",
        "A table of the host that grows without one of its functions being called.",
        ExpectedEnd::CallCap("handles_max")
    ),
    text!("handles-that-are-dropped", "A count of handles that does not go down again.", ExpectedEnd::Harmless),
    text!("handle-that-was-never-given", "A table of handles, with a number that is none.", ExpectedEnd::Trap),
    text!("destructor-without-end", "A drop that does not return.", ExpectedEnd::CallCap("fuel_max")),
];
