;; A built-in function of threads.
(core func (canon thread.index))
