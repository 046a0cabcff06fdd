# What is to be asked about while a batch waits is asked about before any of it leaves, and a correction stops all of it.

longhaul run > ../ran
reply y
reply y
later longhaul.toml
longhaul resume > ../ran
told | pick . posts puts
longhaul --json approvals | pick 'approvals[status=open].function'
for id in $(longhaul --json approvals | pick 'approvals[status=open][function=put].id'); do longhaul approvals answer "$id" not like that; done
for id in $(open); do longhaul approvals answer "$id" y; done
longhaul resume > ../ran
told | pick . posts puts
longhaul replay > ../replayed
