;; A start function that loops for ever, before anything is called.
(core module $m (func $start (loop $again (br $again))) (start $start))
(core instance (instantiate $m))
