;; agent + wasi:http/outgoing-handler@0.2.12
;; An agent that wants the network.
(import "wasi:http/outgoing-handler@0.2.12" "handle" (func $handle (param i32 i32 i32 i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (call $handle (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2048))
  (call $say (i64.const 0)))
