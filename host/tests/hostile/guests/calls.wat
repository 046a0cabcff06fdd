;; tool
;; Asks for the time, for ever.
(import "longhaul:plugin/clock@0.1.0" "now-ms" (func $now (result f64)))
(func $body (param i32 i32 i32 i32) (result i32 i32) (loop $again (drop (call $now)) (br $again)) unreachable)
