;; A function with a stack of its own.
(core module
  (type $f (func))
  (type $k (cont $f))
  (func (param (ref null $k)) (resume $k (local.get 0))))
