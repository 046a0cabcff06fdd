import asyncio
async def work(n):
    await asyncio.sleep(n / 50); print("done", n); return n * 2
async def main():
    print(await asyncio.gather(*(work(n) for n in (5, 1, 3))))
asyncio.run(main())
