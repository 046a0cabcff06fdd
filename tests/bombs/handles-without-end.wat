;; Makes handles of its own resource and drops none.
(type $r (resource (rep i32)))
(core func $new (canon resource.new $r))
(core module $m
  (import "" "new" (func $new (param i32) (result i32)))
  (func $start (loop $again (drop (call $new (i32.const 1))) (br $again)))
  (start $start))
(core instance (instantiate $m (with "" (instance (export "new" (func $new))))))
