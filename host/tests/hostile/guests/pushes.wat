;; agent
;; Pushes messages to one conversation, for ever: `l` ten thousand parts of the same 64 KiB each time,
;; `e` one without any part, all else one text of 64 KiB.
(import "longhaul:plugin/conversation@0.1.0" "[constructor]conversation" (func $new (param i32 i32) (result i32)))
(import "longhaul:plugin/conversation@0.1.0" "[method]conversation.push"
  (func $push (param i32 i32 i32 i32 i32 i32)))
(memory (export "memory") 20)
(func $body (param $function i32) (param i32 i32 i32) (result i32 i32)
  (local $at i32) (local $with i32) (local $parts i32)
  (memory.fill (i32.const 65536) (i32.const 97) (i32.const 65536))
  (local.set $at (i32.const 131072))
  (loop $again
    (i32.store (local.get $at) (i32.const 0))
    (i64.store offset=4 (local.get $at) (i64.const 0x1000000010000))
    (local.set $at (i32.add (local.get $at) (i32.const 36)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 491072))))
  (local.set $parts (i32.const 1))
  (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 108)) (then (local.set $parts (i32.const 10000))))
  (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 101)) (then (local.set $parts (i32.const 0))))
  (local.set $with (call $new (i32.const 2048) (i32.const 0)))
  (loop $again
    (call $push (local.get $with) (i32.const 0) (i32.const 131072) (local.get $parts) (i32.const 0) (i32.const 2048))
    (br_if $again (i32.eqz (i32.load8_u (i32.const 2048)))))
  unreachable)
