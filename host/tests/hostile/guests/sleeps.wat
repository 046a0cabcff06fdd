;; tool
;; Sleeps: `l` once, for 49 days, and answers 1 if that is refused; all else 40 ms at a time, for ever.
(import "longhaul:plugin/timer@0.1.0" "sleep" (func $sleep (param i32 i32)))
(func $body (param $function i32) (param i32 i32 i32) (result i32 i32)
  (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 108))
    (then
      (call $sleep (i32.const -1) (i32.const 2048))
      (return (call $say (i64.load8_u (i32.const 2048))))))
  (loop $again (call $sleep (i32.const 40) (i32.const 2048)) (br $again))
  unreachable)
