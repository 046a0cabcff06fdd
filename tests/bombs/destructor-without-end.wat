;; A destructor that loops for ever, called by a drop.
(core module $d (func (export "drop") (param i32) (loop $again (br $again))))
(core instance $d (instantiate $d))
(type $r (resource (rep i32) (dtor (core func $d "drop"))))
(core func $new (canon resource.new $r))
(core func $drop (canon resource.drop $r))
(core module $m
  (import "" "new" (func $new (param i32) (result i32)))
  (import "" "drop" (func $drop (param i32)))
  (func $start (call $drop (call $new (i32.const 1))))
  (start $start))
(core instance (instantiate $m (with "" (instance (export "new" (func $new)) (export "drop" (func $drop))))))
