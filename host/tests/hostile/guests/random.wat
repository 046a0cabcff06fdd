;; tool
;; Asks for 1 TiB of randomness; `m` for 1 MiB eight times.
(import "wasi:random/random@0.2.12" "get-random-bytes" (func $random (param i64 i32)))
(memory (export "memory") 200)
(func $body (param $function i32) (param i32 i32 i32) (result i32 i32)
  (local $n i64)
  (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 109))
    (then
      (loop $again
        (call $random (i64.const 1048576) (i32.const 2048))
        (local.set $n (i64.add (local.get $n) (i64.const 1)))
        (br_if $again (i64.lt_u (local.get $n) (i64.const 8))))
      (return (call $say (i64.extend_i32_u (i32.load (i32.const 2052)))))))
  (call $random (i64.const 1099511627776) (i32.const 2048))
  (call $say (i64.const 0)))
