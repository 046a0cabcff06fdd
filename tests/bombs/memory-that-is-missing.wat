;; A function that takes a text and has no memory to put it.
(core module $m (func (export "f") (param i32 i32)))
(core instance $i (instantiate $m))
(func (param "x" string) (canon lift (core func $i "f")))
