;; agent
;; Waits for a clock: `n` for nothing at all, all else for 584 years.
(import "wasi:clocks/monotonic-clock@0.2.12" "subscribe-duration" (func $subscribe (param i64) (result i32)))
(import "wasi:io/poll@0.2.12" "[method]pollable.block" (func $block (param i32)))
(import "wasi:io/poll@0.2.12" "poll" (func $poll (param i32 i32 i32)))
(func $body (param $function i32) (param i32 i32 i32) (result i32 i32)
  (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 110))
    (then (call $poll (i32.const 2048) (i32.const 0) (i32.const 2304))))
  (call $block (call $subscribe (i64.const -1)))
  (call $say (i64.const 0)))
