;; tool
;; Writes lines of 4 MiB for ever, and computes next to nothing.
(import "longhaul:plugin/log@0.1.0" "write" (func $write (param i32 i32 i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (drop (memory.grow (i32.const 80)))
  (loop $again
    (call $write (i32.const 3) (i32.const 65536) (i32.const 4194304))
    (br $again))
  (call $say (i64.const 0)))
