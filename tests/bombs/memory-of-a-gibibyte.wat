;; A memory that starts larger than memories may be. One of 4 GiB is more than small machines promise to anybody.
(core module $m (memory 16384))
(core instance (instantiate $m))
