;; tool
;; Crashes before it can be called.
(func $start unreachable)
(start $start)
(func $body (param i32 i32 i32 i32) (result i32 i32) unreachable)
