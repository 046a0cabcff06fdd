import calendar
print(calendar.isleap(2024), calendar.monthrange(2023, 2), calendar.month_name[5], calendar.day_abbr[0])
print(calendar.month(2024, 2))
