# An ask beside a run of its project changes nothing about it.

longhaul run --plan-only > ../planned
longhaul --json status | pick run > ../run
longhaul ask --agent helper 'do alpha' > ../asked 2>&1
longhaul --json projects | pick 'items[*]' project status
longhaul --json projects | pick 'items[*].run' | diff - ../run
longhaul resume "$(cat ../run)" > ../ran
longhaul --json status "$(cat ../run)" | pick 'features[*]' id status
