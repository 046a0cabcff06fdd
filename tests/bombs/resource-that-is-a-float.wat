;; A resource whose representation is no number that hosts keep.
(type (resource (rep f64)))
