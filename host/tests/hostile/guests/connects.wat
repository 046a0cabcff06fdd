;; tool + wasi:sockets/tcp-create-socket@0.2.12, wasi:sockets/instance-network@0.2.12, wasi:sockets/tcp@0.2.12
;; Answers 1000 + the error of making a socket, or the error of connecting it to 127.0.0.1:80, or 0.
(import "wasi:sockets/tcp-create-socket@0.2.12" "create-tcp-socket" (func $create (param i32 i32)))
(import "wasi:sockets/instance-network@0.2.12" "instance-network" (func $network (result i32)))
(import "wasi:sockets/tcp@0.2.12" "[method]tcp-socket.start-connect"
  (func $connect (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (call $create (i32.const 0) (i32.const 2048))
  (if (i32.load8_u (i32.const 2048))
    (then (return (call $say (i64.add (i64.const 1000) (i64.load8_u (i32.const 2052)))))))
  (call $connect (i32.load (i32.const 2052)) (call $network)
    (i32.const 0) (i32.const 80) (i32.const 127) (i32.const 0) (i32.const 0) (i32.const 1)
    (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2304))
  (if (i32.load8_u (i32.const 2304))
    (then (return (call $say (i64.add (i64.const 1) (i64.load8_u (i32.const 2305)))))))
  (call $say (i64.const 0)))
