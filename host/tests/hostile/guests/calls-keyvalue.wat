;; agent + longhaul:plugin/keyvalue@0.1.0
;; An agent that wants a place of its own outside of its journal.
(import "longhaul:plugin/keyvalue@0.1.0" "delete" (func $delete (param i32 i32 i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (call $delete (i32.const 2048) (i32.const 0) (i32.const 2304))
  (call $say (i64.const 0)))
