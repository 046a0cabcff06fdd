;; tool
;; Writes 5 000 lines of 10 000 bytes.
(import "longhaul:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (local $n i32)
  (memory.fill (i32.const 65536) (i32.const 97) (i32.const 10000))
  (loop $again
    (call $write (i32.const 3) (i32.const 65536) (i32.const 10000))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 5000))))
  (call $say (i64.extend_i32_u (local.get $n))))
