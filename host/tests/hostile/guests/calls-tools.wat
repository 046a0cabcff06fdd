;; tool + longhaul:plugin/tools@0.1.0
;; A tool that wants tools.
(import "longhaul:plugin/tools@0.1.0" "list" (func $list (param i32)))
(func $body (param i32 i32 i32 i32) (result i32 i32) (call $list (i32.const 2048)) (call $say (i64.const 0)))
