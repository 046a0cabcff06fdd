;; A function that names two encodings of its texts.
(core module $m (func (export "f")))
(core instance $i (instantiate $m))
(func (canon lift (core func $i "f") string-encoding=utf8 string-encoding=utf16))
