import asyncio
async def main():
    print("before"); raise RuntimeError("late")
asyncio.run(main())
