;; tool
;; Fills 64 MiB, for ever: few instructions, much work.
(memory (export "memory") 1024)
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (loop $again
    (memory.fill (i32.const 65536) (i32.const 1) (i32.const 67043328))
    (br $again))
  unreachable)
