;; A memory whose addresses have 64 bits.
(core module (memory i64 1))
