#!/usr/bin/env bash
# A notebook that fails, is diagnosed, patched and run again, and runs again only what was touched.
#
# Needs `longhaul` on PATH, or its path in LONGHAUL, and the Python of `longhaul runtimes pull python`. No model is
# asked. Leaves nothing behind.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
longhaul=${LONGHAUL:-longhaul}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
export LONGHAUL_HOME=$place/home

graph() {
    echo "\$ longhaul graph $1"
    shift
    # 3: a step failed, which here is part of the story.
    "$longhaul" graph "$@" || [ $? -eq 3 ]
}

cd "$place"
graph "new planets --dir data:/data:ro" new planets --dir "$here/data:/data:ro"
graph "add planets --file notebook.py" add planets --file "$here/notebook.py"
graph "run planets" run planets
graph "diagnose planets" diagnose planets
graph "patch planets" patch planets
graph "run planets" run planets
graph "show planets" show planets
# Another source, the same planets: what needs them is answered from the store.
cat > numbers.py <<'END'
names = {"name": "planet", "distance": "distance_million_km", "period": "orbital_period_days"}
planets = [{name: row[column] if name == "name" else float(row[column]) for name, column in names.items()} for row in rows]
END
graph "change planets numbers --file numbers.py" change planets numbers --file numbers.py
graph "run planets" run planets
# Another question: nothing else is touched.
cat > worst.py <<'END'
worst = min(errors, key=lambda name: abs(errors[name]) if name != "Earth" else 1)
print("the best is", worst)
END
graph "change planets worst --file worst.py" change planets worst --file worst.py
graph "run planets" run planets
graph "show planets worst" show planets worst | grep -v '^took'
