;; A set of what is waited for.
(core func (canon waitable-set.new))
