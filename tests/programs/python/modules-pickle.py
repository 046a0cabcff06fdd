import pickle
class K:
    def __init__(self): self.v = {1: "a"}
print(pickle.loads(pickle.dumps(K())).v, pickle.loads(pickle.dumps([1, (2, {3})])))
