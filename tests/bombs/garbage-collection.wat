;; A list that grows on a heap which no linear memory holds.
(core module
  (type $node (struct (field (ref null 0))))
  (func (local (ref null $node))
    (loop $again
      (local.set 0 (struct.new $node (local.get 0)))
      (br $again))))
