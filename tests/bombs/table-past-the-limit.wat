;; A table that starts larger than tables may be.
(core module $m (table 50000 funcref))
(core instance (instantiate $m))
