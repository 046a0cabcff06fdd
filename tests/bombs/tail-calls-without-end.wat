;; Two functions that call each other without a stack.
(core module $m
  (func $one (return_call $two))
  (func $two (return_call $one))
  (start $one))
(core instance (instantiate $m))
