class InsufficientFunds(Exception):
    def __init__(self, need): super().__init__(f"need {need} more"); self.need = need
class Account:
    def __init__(self, b): self.b = b
    def take(self, n):
        if n > self.b: raise InsufficientFunds(n - self.b)
        self.b -= n; return self
try: Account(10).take(3).take(9)
except InsufficientFunds as e: print(e, e.need, repr(e), e.args)
