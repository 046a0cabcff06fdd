;; No bomb: the program that carries them, so that their refusals mean something.
