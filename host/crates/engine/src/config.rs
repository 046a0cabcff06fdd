//! wasmtime's configuration, for the host and for the child that compiles.

use crate::deferred_drop::CLEARING_MAX;
use longhaul_core::Digest;
use std::hash::{DefaultHasher, Hash, Hasher};
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig};

/// The version of wasmtime in the workspace's manifest; part of the fingerprint.
const WASMTIME: &str = "48.0.8";

/// Address space of one linear memory: all of 32-bit wasm, so that no bound needs checking.
const MEMORY_RESERVATION_BYTES: u64 = 4 << 30;

/// The stack of a call, in bytes. QuickJS ends a recursion as an error of the language within five of these six MiB.
pub(crate) const STACK_BYTES_MAX: usize = 6 << 20;

/// Stack that is left for functions of the host, which run on the stack of the call.
const HOST_STACK_BYTES: usize = 1 << 20;

/// Instances in the pool. 5 maps each, of the 65 530 that Linux gives a process.
const POOL_INSTANCES: u32 = 256;

/// Instances in the pool of a process that ends after its call. Each place costs the guard page of its stack, a system
/// call and two maps: those of the whole pool took 0.7 ms, and another 0.5 ms at the end.
const LAST_INSTANCES: u32 = 8;

/// Core instances of the pool for each place. An interpreter's component has about 40.
const CORE_INSTANCES_EACH: u32 = 16;

/// Most core instances, memories and tables of a component. The smallest pool has room for a component with all of them
/// in each of its places, so that it ends no job sooner than another pool.
const CORE_INSTANCES_MAX: u32 = 256;
const MEMORIES_MAX: u32 = 8;
const TABLES_MAX: u32 = 32;

/// Bytes of a memory that are zeroed by hand and stay mapped: measured to halve a warm start.
const MEMORY_KEEP_RESIDENT_BYTES: usize = 128 << 10;

/// The same where the kernel reports the written pages (Linux 6.7), so that only those are reset. An interpreter writes
/// about a megabyte; at worst the whole pool keeps this much a memory, 4 GiB.
///
/// wasmtime examines 32 runs of written pages and releases all behind them. CPython writes 350 pages in 250 runs, so
/// that a fresh one finds most of them gone: 420 faults, 1.6 ms. Keeping whole memories without that examination, 32
/// MiB, saves those and takes 4.5 ms of copying for each call, which a back-to-back caller waits for.
const WRITTEN_KEEP_RESIDENT_BYTES: usize = 8 << 20;

/// Bytes of tables that are reset by hand: an interpreter has 11 000 function references.
const TABLE_KEEP_RESIDENT_BYTES: usize = 1 << 20;

/// Options of the host.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// True when instances are allocated one by one instead of from a pool. Default false. The pool needs terabytes of
    /// address space; if those are unavailable, it is left out automatically.
    pub on_demand: bool,
    /// True when a thread of the engine drops the remains of a call, so that the call returns before. For interpreters,
    /// which leave much; a small instance is dropped sooner than it is handed over. The call's services are released on
    /// that thread, too: a little after the call has returned. Default false.
    pub clears_aside: bool,
    /// True in a process that ends after its call: nothing that a call leaves is dropped, for the system takes it back
    /// with the process. Each call keeps its memory, its services and its place in the pool until then, and the pool
    /// has 8 places. Default false; with it `clears_aside` has no effect.
    pub ends_after_call: bool,
}

/// The settings that compiled code depends on. The same in the host and in the child that compiles.
#[must_use]
pub fn compile_config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .cranelift_nan_canonicalization(true)
        .relaxed_simd_deterministic(true)
        .wasm_memory64(false)
        .concurrency_support(false)
        .memory_reservation(MEMORY_RESERVATION_BYTES)
        .memory_guaranteed_dense_image_size(256 << 20)
        .max_wasm_stack(STACK_BYTES_MAX)
        .async_stack_size(STACK_BYTES_MAX + HOST_STACK_BYTES)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(20));
    config
}

/// The configuration with the pool, or without it.
pub(crate) fn host_config(options: &EngineOptions) -> Config {
    let mut config = compile_config();
    if !options.on_demand {
        let places = match options {
            EngineOptions { ends_after_call: true, .. } => LAST_INSTANCES,
            EngineOptions { clears_aside: true, .. } => POOL_INSTANCES + CLEARING_MAX,
            _ => POOL_INSTANCES,
        };
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(places)));
    }
    config
}

fn pool(places: u32) -> PoolingAllocationConfig {
    let tells_written = PoolingAllocationConfig::is_pagemap_scan_available();
    let memory_keep_resident = if tells_written { WRITTEN_KEEP_RESIDENT_BYTES } else { MEMORY_KEEP_RESIDENT_BYTES };
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(places)
        .max_component_instance_size(4 << 20)
        .total_core_instances((places * CORE_INSTANCES_EACH).max(LAST_INSTANCES * CORE_INSTANCES_MAX))
        .max_core_instance_size(4 << 20)
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .total_memories((places * 2).max(LAST_INSTANCES * MEMORIES_MAX))
        .max_memories_per_component(MEMORIES_MAX)
        .max_memories_per_module(MEMORIES_MAX)
        .max_memory_size(usize::try_from(MEMORY_RESERVATION_BYTES).unwrap_or(usize::MAX))
        .total_tables((places * 4).max(LAST_INSTANCES * TABLES_MAX))
        .max_tables_per_component(TABLES_MAX)
        .max_tables_per_module(TABLES_MAX)
        .table_elements(100_000)
        .total_stacks(places)
        .pagemap_scan(Enabled::Auto)
        .linear_memory_keep_resident(memory_keep_resident)
        .table_keep_resident(TABLE_KEEP_RESIDENT_BYTES)
        .async_stack_keep_resident(32 << 10)
        .decommit_batch_size(16);
    pool
}

/// Equal fuel and equal results are promised within this: wasmtime's version and its settings.
#[must_use]
pub fn fingerprint(engine: &wasmtime::Engine) -> String {
    // The hasher's keys are fixed, so the same settings give the same number in every process.
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let settings = Digest::of_parts(&[WASMTIME.as_bytes(), &hasher.finish().to_le_bytes()]);
    format!("wasmtime {WASMTIME} {}", settings.short())
}
