;; A component that begins by itself.
(core module $m (func (export "f")))
(core instance $i (instantiate $m))
(func $f (canon lift (core func $i "f")))
(start $f)
