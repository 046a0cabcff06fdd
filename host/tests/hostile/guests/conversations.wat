;; agent
;; Opens conversations and closes each at once.
(import "longhaul:plugin/conversation@0.1.0" "[constructor]conversation" (func $new (param i32 i32) (result i32)))
(import "longhaul:plugin/conversation@0.1.0" "[resource-drop]conversation" (func $drop (param i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32)
  (loop $again (call $drop (call $new (i32.const 2048) (i32.const 0))) (br $again))
  unreachable)
