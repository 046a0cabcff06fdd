;; A call through a reference that has a type.
(core module
  (type $f (func))
  (func (param (ref null $f)) (call_ref $f (local.get 0))))
