import asyncio
async def main():
    try: await asyncio.wait_for(asyncio.sleep(10), 0.01)
    except asyncio.TimeoutError: print("timeout")
    results = await asyncio.gather(asyncio.sleep(0, "ok"), fail(), return_exceptions=True)
    print(results)
async def fail(): raise ValueError("bad")
asyncio.run(main())
