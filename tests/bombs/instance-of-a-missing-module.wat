;; A module that asks for what it is not given.
(core module $m (import "" "f" (func)))
(core instance (instantiate $m))
