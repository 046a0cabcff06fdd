;; tool
;; Never ends.
(func $body (param i32 i32 i32 i32) (result i32 i32) (loop $again (br $again)) unreachable)
