;; Guesses a handle.
(type $r (resource (rep i32)))
(core func $rep (canon resource.rep $r))
(core module $m
  (import "" "rep" (func $rep (param i32) (result i32)))
  (func $start (drop (call $rep (i32.const 268435455))))
  (start $start))
(core instance (instantiate $m (with "" (instance (export "rep" (func $rep))))))
