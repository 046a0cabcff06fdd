//! Servers of others as tools: what they describe, answer and leave, and the suite `mcp_extract`.

mod cases;
mod servers;
