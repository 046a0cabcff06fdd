;; A destructor that takes what no handle holds.
(core module $m (func (export "drop") (param f64)))
(core instance $i (instantiate $m))
(type (resource (rep i32) (dtor (core func $i "drop"))))
