# %% load
import csv

with open("/data/planets.csv", newline="") as file:
    rows = list(csv.DictReader(file))
print(len(rows), "planets")

# %% warmest
warmest = max(rows, key=lambda row: int(row["mean_temperature_c"]))["planet"]
print("the warmest is", warmest)

# %% numbers
planets = [
    {
        "name": row["planet"],
        "distance": float(row["distance_million_km"]),
        "period": float(row["orbital_period_days"]),
    }
    for row in rows
]

# %% kepler
earth = next(planet for planet in planets if planet["name"] == "Earth")


def expected(planet):
    return earth["period"] * math.sqrt((planet["distance"] / earth["distance"]) ** 3)


errors = {planet["name"]: planet["period"] / expected(planet) - 1 for planet in planets}

# %% worst
worst = max(errors, key=lambda name: abs(errors[name]))
print(f"Kepler's third law holds within {abs(errors[worst]):.1%}, the worst is {worst}")
