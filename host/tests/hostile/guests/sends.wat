;; tool
;; Logs 9 MiB at once.
(import "longhaul:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32)))
(memory (export "memory") 160)
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (call $write (i32.const 3) (i32.const 65536) (i32.const 9437184))
  (call $say (i64.const 0)))
