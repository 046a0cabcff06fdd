;; A multiplication of 128 bits.
(core module (func (result i64 i64) (i64.mul_wide_u (i64.const 1) (i64.const 1))))
