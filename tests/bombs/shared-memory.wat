;; A memory that threads share, and a wait for what never comes.
(core module $m
  (memory 1 1 shared)
  (func $start (drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1))))
  (start $start))
(core instance (instantiate $m))
