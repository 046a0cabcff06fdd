;; tool
;; Adds headers to one request, for ever, until that is refused; answers 1 then.
(import "wasi:http/types@0.2.12" "[constructor]fields" (func $new (result i32)))
(import "wasi:http/types@0.2.12" "[method]fields.append" (func $append (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 2048) "x-flood")
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (local $fields i32)
  (memory.fill (i32.const 65536) (i32.const 97) (i32.const 4096))
  (local.set $fields (call $new))
  (loop $again
    (call $append (local.get $fields) (i32.const 2048) (i32.const 7) (i32.const 65536) (i32.const 4096) (i32.const 2304))
    (br_if $again (i32.eqz (i32.load8_u (i32.const 2304)))))
  (call $say (i64.load8_u (i32.const 2304))))
