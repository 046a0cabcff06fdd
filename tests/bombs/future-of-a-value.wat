;; A value that is promised.
(type $f (future u8))
(core func (canon future.new $f))
