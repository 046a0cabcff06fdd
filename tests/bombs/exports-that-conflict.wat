;; Two exports whose names differ in the case of their letters alone.
(core module $m)
(export "same-name" (core module $m))
(export "SAME-name" (core module $m))
