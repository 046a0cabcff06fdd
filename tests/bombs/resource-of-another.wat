;; A component that makes handles of a resource which it only imports.
(component
  (import "r" (type $r (sub resource)))
  (core func (canon resource.new $r)))
