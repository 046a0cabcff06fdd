;; A segment of data that does not fit into its memory.
(core module $m (memory 1) (data (i32.const 65535) "xx"))
(core instance (instantiate $m))
