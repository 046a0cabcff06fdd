import asyncio
active = peak = 0
async def job(s, n):
    global active, peak
    async with s:
        active += 1; peak = max(peak, active); await asyncio.sleep(0.001); active -= 1
        return n
async def main():
    s = asyncio.Semaphore(2)
    print(await asyncio.gather(*(job(s, n) for n in range(6))), peak)
asyncio.run(main())
