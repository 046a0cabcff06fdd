;; A text about an error that the host keeps.
(type $e error-context)
