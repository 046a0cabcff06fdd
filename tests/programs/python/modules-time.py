import time
a = time.monotonic(); time.sleep(0.01); print(time.monotonic() - a >= 0.009, time.time() > 1.6e9, time.perf_counter() >= 0)
