import sys, gc, weakref
class K: pass
k = K(); r = weakref.ref(k); print(r() is k); del k; gc.collect(); print(r()); print(sys.getsizeof([]) > 0, id(r) == id(r))
