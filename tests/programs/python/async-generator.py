import asyncio
async def pages():
    for p in range(3):
        await asyncio.sleep(0); yield p
async def main():
    print([p async for p in pages() if p], [x async for x in pages()])
asyncio.run(main())
