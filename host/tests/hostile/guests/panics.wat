;; tool
;; Does what a panic of Rust does: words on standard error, then a trap.
(import "wasi:cli/stderr@0.2.12" "get-stderr" (func $stderr (result i32)))
(import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush"
  (func $print (param i32 i32 i32 i32)))
(data (i32.const 2048) "thread 'main' panicked at src/lib.rs:7:5: no cheese\n")
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (call $print (call $stderr) (i32.const 2048) (i32.const 52) (i32.const 2304))
  unreachable)
