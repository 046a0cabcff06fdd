;; tool
;; Grows three memories in turn, each far below what one may have.
(memory (export "memory") 4)
(memory $second 50)
(memory $third 50)
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (loop $again
    (drop (memory.grow $second (i32.const 10)))
    (br_if $again (i32.ne (memory.grow $third (i32.const 10)) (i32.const -1))))
  unreachable)
