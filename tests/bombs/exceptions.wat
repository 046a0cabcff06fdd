;; A function that throws and never catches.
(core module
  (tag $t)
  (func (throw $t)))
