;; tool
;; Adds 1 to 1000, reads the clock and writes one line.
(import "longhaul:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32)))
(import "longhaul:plugin/clock@0.1.0" "now" (func $now (result f64)))
(data (i32.const 2048) "all is well")
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (local $n i64) (local $sum i64)
  (call $write (i32.const 2) (i32.const 2048) (i32.const 11))
  (if (f64.le (call $now) (f64.const 0)) (then unreachable))
  (loop $again
    (local.set $n (i64.add (local.get $n) (i64.const 1)))
    (local.set $sum (i64.add (local.get $sum) (local.get $n)))
    (br_if $again (i64.lt_u (local.get $n) (i64.const 1000))))
  (call $say (local.get $sum)))
