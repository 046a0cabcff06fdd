;; tool
;; Keeps 40 values of 1 MiB, then lists their keys and answers how many it got.
(import "longhaul:plugin/keyvalue@0.1.0" "set" (func $set (param i32 i32 i32 i32 i32)))
(import "longhaul:plugin/keyvalue@0.1.0" "list-keys" (func $list (param i32 i32 i32 i32 i32 i32)))
(memory (export "memory") 20)
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (local $n i32)
  (loop $again
    (i32.store8 (i32.const 2048) (i32.add (i32.const 48) (local.get $n)))
    (call $set (i32.const 2048) (i32.const 1) (i32.const 65536) (i32.const 1048576) (i32.const 2304))
    (if (i32.load8_u (i32.const 2304)) (then unreachable))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 40))))
  (call $list (i32.const 2048) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2304))
  (if (i32.load8_u (i32.const 2304)) (then unreachable))
  (call $say (i64.extend_i32_u (i32.load (i32.const 2316)))))
