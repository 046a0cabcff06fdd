;; tool
;; Grows two tables in turn.
(table $first 100 funcref)
(table $second 100 funcref)
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (loop $again
    (drop (table.grow $second (ref.null func) (i32.const 100)))
    (br_if $again (i32.ne (table.grow $first (ref.null func) (i32.const 100)) (i32.const -1))))
  unreachable)
