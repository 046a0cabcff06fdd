;; tool
;; Prints 12 MiB: `l` in lines of one letter, all else in one line.
(import "wasi:cli/stdout@0.2.12" "get-stdout" (func $stdout (result i32)))
(import "wasi:io/streams@0.2.12" "[method]output-stream.blocking-write-and-flush"
  (func $print (param i32 i32 i32 i32)))
(func $body (param $function i32) (param i32 i32 i32) (result i32 i32)
  (local $n i32) (local $out i32)
  (memory.fill (i32.const 65536) (i32.const 97) (i32.const 4096))
  (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 108))
    (then
      (loop $again
        (i32.store8 offset=65537 (local.get $n) (i32.const 10))
        (local.set $n (i32.add (local.get $n) (i32.const 2)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 4096))))))
  (local.set $out (call $stdout))
  (local.set $n (i32.const 0))
  (loop $again
    (call $print (local.get $out) (i32.const 65536) (i32.const 4096) (i32.const 2048))
    (if (i32.load8_u (i32.const 2048)) (then unreachable))
    (local.set $n (i32.add (local.get $n) (i32.const 1)))
    (br_if $again (i32.lt_u (local.get $n) (i32.const 3072))))
  (call $say (i64.extend_i32_u (local.get $n))))
