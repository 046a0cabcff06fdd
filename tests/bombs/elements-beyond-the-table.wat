;; A segment of functions that does not fit into its table.
(core module $m (table 1 funcref) (func $f) (elem (i32.const 1) $f))
(core instance (instantiate $m))
