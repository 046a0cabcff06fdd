from datetime import datetime, timezone
import time
print(datetime.fromtimestamp(86400, timezone.utc), datetime(1970, 1, 2, tzinfo=timezone.utc).timestamp(), time.strftime("%Y", time.gmtime(0)), time.gmtime(0).tm_wday)
