;; A start function that ends the instance.
(core module $m (func $start (unreachable)) (start $start))
(core instance (instantiate $m))
