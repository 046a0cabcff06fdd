;; A table that grows for ever.
(core module $m
  (table $t 1 funcref)
  (func $start
    (loop $again
      (if (i32.eq (table.grow $t (ref.null func) (i32.const 100)) (i32.const -1)) (then unreachable))
      (br $again)))
  (start $start))
(core instance (instantiate $m))
