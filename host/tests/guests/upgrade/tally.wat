;; A tool of the made-up contract 0.2. It logs the function that it is asked for, counts the attempts, is
;; busy when the function starts with a `b`, and otherwise answers who asked.
(module
  (import "longhaul:plugin/log@0.2.0" "write" (func $write (param i32 i32 i32 i32 i32)))
  (import "longhaul:plugin/meter@0.2.0" "count" (func $count (param i32 i32 i32 i32)))
  (memory (export "memory") 2)
  (global $heap (mut i32) (i32.const 4096))
  (data (i32.const 16) "tally")
  (data (i32.const 32) "Counts.")
  (data (i32.const 48) "7")
  (data (i32.const 64) "count")
  (data (i32.const 80) "{\"type\":\"object\"}")
  (data (i32.const 112) "attempts")

  (func (export "cabi_realloc") (param i32 i32 i32) (param $len i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get $len)))
    (if (i32.gt_u (global.get $heap) (i32.const 131072)) (then unreachable))
    (local.get $at))

  (func (export "longhaul:plugin/tool@0.2.0#describe") (result i32)
    ;; One function: name, description, parameters, effect, takes-ms-max.
    (i32.store (i32.const 600) (i32.const 64)) (i32.store (i32.const 604) (i32.const 5))
    (i32.store (i32.const 608) (i32.const 32)) (i32.store (i32.const 612) (i32.const 7))
    (i32.store (i32.const 616) (i32.const 80)) (i32.store (i32.const 620) (i32.const 17))
    (i32.store8 (i32.const 624) (i32.const 0))
    (i32.store (i32.const 628) (i32.const 5))
    ;; The tool: id, description, version, functions.
    (i32.store (i32.const 512) (i32.const 16)) (i32.store (i32.const 516) (i32.const 5))
    (i32.store (i32.const 520) (i32.const 32)) (i32.store (i32.const 524) (i32.const 7))
    (i32.store (i32.const 528) (i32.const 48)) (i32.store (i32.const 532) (i32.const 1))
    (i32.store (i32.const 536) (i32.const 600)) (i32.store (i32.const 540) (i32.const 1))
    (i32.const 512))

  (func (export "longhaul:plugin/tool@0.2.0#prepare") (param i32 i32 i32 i32) (result i32) unreachable)
  (func (export "longhaul:plugin/tool@0.2.0#verify") (param i32 i32 i32 i32 i32 i32) (result i32) unreachable)

  (func (export "longhaul:plugin/tool@0.2.0#call")
    (param $function i32) (param $function_len i32) (param $arguments i32) (param $arguments_len i32)
    (param $key i32) (param $key_len i32) (param $remaining_ms i32) (param $attempt i32)
    (param $settings i32) (param $settings_len i32) (param $caller i32) (param $caller_len i32) (result i32)
    (call $write (i32.const 2) (i32.const 16) (i32.const 5) (local.get $function) (local.get $function_len))
    (call $count (i32.const 112) (i32.const 8) (local.get $attempt) (i32.const 704))
    (if (i32.eq (i32.load8_u (local.get $function)) (i32.const 98))
      (then
        ;; An error, its eighth case, 250.
        (i32.store8 (i32.const 512) (i32.const 1))
        (i32.store8 (i32.const 520) (i32.const 7))
        (i32.store (i32.const 528) (i32.const 250))
        (return (i32.const 512))))
    ;; The caller in quotes.
    (i32.store8 (i32.const 1024) (i32.const 34))
    (memory.copy (i32.const 1025) (local.get $caller) (local.get $caller_len))
    (i32.store8 (i32.add (i32.const 1025) (local.get $caller_len)) (i32.const 34))
    (i32.store8 (i32.const 512) (i32.const 0))
    (i32.store (i32.const 520) (i32.const 1024))
    (i32.store (i32.const 524) (i32.add (local.get $caller_len) (i32.const 2)))
    (i32.store8 (i32.const 528) (i32.const 0))
    (i32.const 512)))
