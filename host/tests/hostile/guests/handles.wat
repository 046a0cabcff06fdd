;; tool
;; Opens handles and closes none: `s` standard output, `p` pollables of a clock.
(import "wasi:cli/stdout@0.2.12" "get-stdout" (func $stdout (result i32)))
(import "wasi:clocks/monotonic-clock@0.2.12" "subscribe-duration" (func $subscribe (param i64) (result i32)))
(func $body (param $function i32) (param i32 i32 i32) (result i32 i32)
  (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 115))
    (then (loop $again (drop (call $stdout)) (br $again))))
  (loop $again (drop (call $subscribe (i64.const 1000000))) (br $again))
  unreachable)
