;; A function that is lifted as one that may wait, with a callback of another type.
(core module $m (func (export "f") (result i32) (i32.const 0)) (func (export "callback") (result f64) (f64.const 0)))
(core instance $i (instantiate $m))
(func (export "f") async (canon lift (core func $i "f") async (callback (core func $i "callback"))))
