;; tool
;; Answers with all of its memory but the first page: 1 MiB more than the text in `arguments` has bytes.
(memory (export "memory") 20)
(func $body (param i32 i32) (param $arguments i32) (param $mib i32) (result i32 i32)
  (if (i32.eq (memory.grow (i32.mul (local.get $mib) (i32.const 16))) (i32.const -1)) (then unreachable))
  (memory.fill (i32.const 65536) (i32.const 49)
    (i32.mul (i32.add (local.get $mib) (i32.const 1)) (i32.const 1048576)))
  (i32.const 65536)
  (i32.mul (i32.add (local.get $mib) (i32.const 1)) (i32.const 1048576)))
