;; tool
;; Copies and fills memory a hundred times, which the run time does for it.
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (local $count i32)
  (loop $again
    (memory.copy (i32.const 2048) (i32.const 1024) (i32.const 512))
    (memory.fill (i32.const 4096) (i32.const 7) (i32.const 512))
    (br_if $again (i32.lt_u (local.tee $count (i32.add (local.get $count) (i32.const 1))) (i32.const 100))))
  (call $say (i64.extend_i32_u (local.get $count))))
