import asyncio
async def main():
    q = asyncio.Queue()
    async def produce():
        for i in range(3): await q.put(i)
        await q.put(None)
    task = asyncio.create_task(produce())
    while (item := await q.get()) is not None: print(item)
    await task
asyncio.run(main())
