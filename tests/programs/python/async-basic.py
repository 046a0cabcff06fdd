import asyncio
async def main():
    print("a"); await asyncio.sleep(0.001); print("b"); return "c"
print(asyncio.run(main()))
