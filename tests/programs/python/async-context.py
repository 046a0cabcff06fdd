import asyncio
class Conn:
    async def __aenter__(self): print("open"); return self
    async def __aexit__(self, *a): print("close", a[0] and a[0].__name__); return True
async def main():
    async with Conn() as c: print(type(c).__name__); raise KeyError("x")
    lock = asyncio.Lock()
    async with lock: print(lock.locked())
asyncio.run(main())
