from datetime import date
def age(born, today): return today.year - born.year - ((today.month, today.day) < (born.month, born.day))
print(age(date(2000, 2, 29), date(2024, 2, 28)), age(date(1999, 12, 31), date(2024, 12, 31)), date(2024, 1, 1).isocalendar())
