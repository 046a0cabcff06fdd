;; A stream between components.
(type $s (stream u8))
(core func (canon stream.new $s))
