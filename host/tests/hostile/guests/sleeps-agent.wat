;; agent
;; Sleeps for 0 ms, for ever: each is two entries of its journal.
(import "longhaul:plugin/timer@0.1.0" "sleep" (func $sleep (param i32 i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (loop $again (call $sleep (i32.const 0) (i32.const 2048)) (br $again))
  unreachable)
