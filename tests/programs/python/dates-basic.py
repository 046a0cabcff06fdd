from datetime import date, datetime, timedelta, timezone
d = datetime(2024, 2, 29, 13, 5, 9, tzinfo=timezone.utc)
print(d.isoformat(), d.strftime("%Y-%m-%d %H:%M:%S %A %B %j"), d + timedelta(days=366), date(2024, 3, 1) - date(2024, 2, 1))
print(datetime.strptime("05/06/24 7:08", "%d/%m/%y %H:%M"), date.fromisoformat("2024-12-25").weekday(), d.astimezone(timezone(timedelta(hours=2))), repr(timedelta(hours=25)))
