;; tool
;; Takes memory by 1 MiB until it gets no more; then `p` says how many pages it has, and all else crashes.
(func $body (param $function i32) (param i32 i32 i32) (result i32 i32)
  (loop $again
    (br_if $again (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  (if (i32.ne (i32.load8_u (local.get $function)) (i32.const 112)) (then unreachable))
  (call $say (i64.extend_i32_u (memory.size))))
