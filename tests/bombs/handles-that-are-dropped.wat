;; Makes ten thousand handles, each dropped before the next, which is no attack.
(type $r (resource (rep i32)))
(core func $new (canon resource.new $r))
(core func $drop (canon resource.drop $r))
(core module $m
  (import "" "new" (func $new (param i32) (result i32)))
  (import "" "drop" (func $drop (param i32)))
  (func $start (local i32)
    (loop $again
      (call $drop (call $new (i32.const 1)))
      (local.set 0 (i32.add (local.get 0) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get 0) (i32.const 10000)))))
  (start $start))
(core instance (instantiate $m (with "" (instance (export "new" (func $new)) (export "drop" (func $drop))))))
