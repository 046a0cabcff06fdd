# An ask beside a run of its project changes nothing about it.

longhaul run --plan-only > ../planned
longhaul --json status | pick run > ../run
longhaul ask --agent helper 'do alpha' > ../asked 2>&1
longhaul --json projects | pick 'projects[*]' project status
longhaul --json projects | pick 'projects[*].run' | diff - ../run
longhaul resume "$(cat ../run)" > ../ran
longhaul --json status "$(cat ../run)" | pick 'features[*]' spec.id status
