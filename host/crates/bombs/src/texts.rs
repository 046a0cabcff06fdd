//! The bombs of `tests/bombs`: fields of a component each. Most use what is switched off here, or start as a bomb.

use crate::bomb::Make::Text;
use crate::bomb::{End, Form, Row};

/// A row whose text is the file of its name.
macro_rules! text {
    ($name:literal, $attacks:literal, $end:expr) => {
        ($name, $attacks, Form::Program, $end, Text(include_str!(concat!("../texts/", $name, ".wat"))))
    };
}

pub(crate) const BOMBS: &[Row] = &[
    text!("nothing", "Nothing: it shows that the limits of the corpus let a program through.", End::Harmless),
    text!("memory-of-64-bits", "Addresses that no guard page covers.", End::Invalid),
    text!("shared-memory", "A wait that no fuel ends.", End::Invalid),
    text!("exceptions", "Unwinding, which is switched off.", End::Invalid),
    text!("garbage-collection", "A heap of the host, which is switched off.", End::Invalid),
    text!("stack-switching", "Stacks that a guest makes, which are switched off.", End::Invalid),
    text!("typed-references", "Calls through references, which cost what calls cost.", End::Harmless),
    text!("wide-arithmetic", "Instructions of 128 bits, which are switched off.", End::Invalid),
    text!("shared-everything", "Globals that threads share, which are switched off.", End::Invalid),
    text!(
        "asynchronous-export",
        "A callback of another type than the host calls, of which a stack overflowed.",
        End::Invalid
    ),
    text!("stream-of-values", "Streams, whose tables the host would keep.", End::Invalid),
    text!("future-of-a-value", "Futures, whose tables the host would keep.", End::Invalid),
    text!("waitable-set", "Sets of what is waited for, which the host would keep.", End::Invalid),
    text!("thread-index", "Threads of components, which are switched off.", End::Invalid),
    text!("error-context", "Texts of errors, which the host would keep.", End::Invalid),
    text!("encodings-that-conflict", "An adapter that is told two encodings.", End::Invalid),
    text!("memory-that-is-missing", "An adapter that has no memory to write to.", End::Invalid),
    text!("lift-of-another-type", "A call with other arguments than its function takes.", End::Invalid),
    text!("resource-that-is-a-float", "A table of handles of another type.", End::Invalid),
    text!("resource-of-another", "Handles that somebody else's table holds.", End::Invalid),
    text!("destructor-of-another-type", "A call of a destructor with another argument.", End::Invalid),
    text!("exports-that-conflict", "A reader that does not tell the two names apart.", End::Invalid),
    text!("start-of-a-component", "A start that no limit was set for.", End::Invalid),
    text!("instance-of-a-missing-module", "A linker that leaves an import empty.", End::Invalid),
    text!("start-without-end", "Instantiation that does not return.", End::CallCap("fuel_max")),
    text!("start-that-calls-itself", "The stack, during instantiation.", End::CallCap("stack_bytes_max")),
    text!("start-that-traps", "Instantiation that fails half way.", End::Trap),
    text!("tail-calls-without-end", "Recursion that the end of the stack does not bound.", End::CallCap("fuel_max")),
    text!("memory-of-a-gibibyte", "A memory that is asked for before anything runs.", End::CallCap("memory_bytes_max")),
    text!("memory-that-grows", "Memory, page by page.", End::CallCap("memory_bytes_max")),
    text!(
        "table-past-the-limit",
        "A table that is asked for before anything runs.",
        End::CallCap("table_elements_max")
    ),
    text!("table-that-grows", "A table, hundred by hundred.", End::CallCap("table_elements_max")),
    text!("data-beyond-the-memory", "Bytes behind the end of a memory.", End::Trap),
    text!("elements-beyond-the-table", "Functions behind the end of a table.", End::Trap),
    text!(
        "handles-without-end",
        "A table of the host that grows without one of its functions being called.",
        End::CallCap("handles_max")
    ),
    text!("handles-that-are-dropped", "A count of handles that does not go down again.", End::Harmless),
    text!("handle-that-was-never-given", "A table of handles, with a number that is none.", End::Trap),
    text!("destructor-without-end", "A drop that does not return.", End::CallCap("fuel_max")),
];
