;; A global that threads share.
(core module (global (shared mut i32) (i32.const 0)))
