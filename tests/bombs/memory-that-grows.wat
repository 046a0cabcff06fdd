;; A memory that grows by 64 KiB for ever.
(core module $m
  (memory 1)
  (func $start
    (loop $again
      (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
      (br $again)))
  (start $start))
(core instance (instantiate $m))
