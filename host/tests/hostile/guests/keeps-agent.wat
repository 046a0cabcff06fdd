;; agent
;; Keeps one thing after the other until a cap refuses it, and answers how many were taken: decisions for `d`, progress
;; for `p`, notes with a key each for `n`, one note again and again, ten times, for `o`.
(import "longhaul:plugin/decisions@0.1.0" "record"
  (func $record (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
(import "longhaul:plugin/progress@0.1.0" "add" (func $log (param i32 i32 i32 i32 i32 i32 i32)))
(import "longhaul:plugin/recall@0.1.0" "remember" (func $remember (param i32 i32 i32 i32 i32 i32)))
(data (i32.const 2048) "0000")
(data (i32.const 2052) "\"a note\"")
(func $body (param $task i32) (param i32 i32 i32) (result i32 i32)
  (local $what i32) (local $count i32)
  (local.set $what (i32.load8_u (local.get $task)))
  (loop $again
    (if (i32.ne (local.get $what) (i32.const 111)) (then
      (i32.store8 (i32.const 2050) (i32.add (i32.const 48) (i32.div_u (local.get $count) (i32.const 10))))
      (i32.store8 (i32.const 2051) (i32.add (i32.const 48) (i32.rem_u (local.get $count) (i32.const 10))))))
    (if (i32.eq (local.get $what) (i32.const 100)) (then
      (call $record
        (i32.const 2048) (i32.const 4) (i32.const 2048) (i32.const 4) (i32.const 2048) (i32.const 4)
        (i32.const 2048) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 2304))))
    (if (i32.eq (local.get $what) (i32.const 112)) (then
      (call $log (i32.const 2048) (i32.const 4) (i32.const 2048) (i32.const 4) (i32.const 2048) (i32.const 0)
        (i32.const 2304))))
    (if (i32.or (i32.eq (local.get $what) (i32.const 110)) (i32.eq (local.get $what) (i32.const 111))) (then
      (call $remember (i32.const 0) (i32.const 2048) (i32.const 4) (i32.const 2052) (i32.const 8) (i32.const 2304))))
    (if (i32.eqz (i32.load8_u (i32.const 2304))) (then
      (local.set $count (i32.add (local.get $count) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $count)
        (select (i32.const 10) (i32.const 99) (i32.eq (local.get $what) (i32.const 111))))))))
  ;; What refuses is a limit, which is told as one.
  (if (i32.load8_u (i32.const 2304)) (then
    (if (i32.ne (i32.load8_u (i32.const 2312)) (i32.const 1)) (then unreachable))))
  (call $say (i64.extend_i32_u (local.get $count))))
