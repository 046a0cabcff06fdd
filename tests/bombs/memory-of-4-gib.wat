;; A memory that starts as large as memories can be.
(core module $m (memory 65536))
(core instance (instantiate $m))
