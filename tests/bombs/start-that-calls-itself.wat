;; A start function that recurses until the stack ends.
(core module $m (func $start (call $start)) (start $start))
(core instance (instantiate $m))
