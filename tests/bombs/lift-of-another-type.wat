;; A function that is lifted as what it is not.
(core module $m (func (export "f") (param f64 f64 f64)))
(core instance $i (instantiate $m))
(func (param "x" u8) (canon lift (core func $i "f")))
