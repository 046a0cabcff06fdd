# Each cap of a whole run stops it by its name, and a higher one lets it go on.

cp longhaul.toml ../free.toml

printf '\n[ask.limits]\nmodel_calls_max = 1\n' | cat ../free.toml - > longhaul.toml
longhaul ask --agent one 'do alpha; put; look' > ../ran 2>&1
grep --only-matching 'raise model_calls_max .*resume' ../ran | head -n 1
longhaul status | grep ledger
cp ../free.toml longhaul.toml && longhaul resume 2> /dev/null
longhaul replay > ../replayed

printf '\n[ask.limits]\ntool_calls_max = 1\n' | cat ../free.toml - > longhaul.toml
longhaul ask --agent one 'do alpha; put; look' > ../ran 2>&1
grep --only-matching 'raise tool_calls_max .*resume' ../ran | head -n 1
longhaul status | grep ledger
cp ../free.toml longhaul.toml && longhaul resume 2> /dev/null
longhaul replay > ../replayed

printf '\n[ask.limits]\nfuel_max = 1\n' | cat ../free.toml - > longhaul.toml
longhaul ask --agent one 'do alpha; put; look' > ../ran 2>&1
grep --only-matching 'raise fuel_max .*resume' ../ran | head -n 1
longhaul status | grep ledger
cp ../free.toml longhaul.toml && longhaul resume 2> /dev/null
longhaul replay > ../replayed

printf '\n[ask.limits]\nmemory_bytes_max = 1\n' | cat ../free.toml - > longhaul.toml
longhaul ask --agent one 'do alpha; put; look' > ../ran 2>&1
grep --only-matching 'raise memory_bytes_max .*resume' ../ran | head -n 1
longhaul status | grep ledger
cp ../free.toml longhaul.toml && longhaul resume 2> /dev/null
longhaul replay > ../replayed

printf '\n[ask.limits]\negress_bytes_max = 1\n' | cat ../free.toml - > longhaul.toml
longhaul ask --agent one 'do alpha; put; look' > ../ran 2>&1
grep --only-matching 'raise egress_bytes_max .*resume' ../ran | head -n 1
longhaul status | grep ledger
cp ../free.toml longhaul.toml && longhaul resume 2> /dev/null
longhaul replay > ../replayed

printf '\n[ask.limits]\nstored_bytes_max = 1\n' | cat ../free.toml - > longhaul.toml
longhaul ask --agent one 'do alpha; put; look' > ../ran 2>&1
grep --only-matching 'raise stored_bytes_max .*resume' ../ran | head -n 1
longhaul status | grep ledger
cp ../free.toml longhaul.toml && longhaul resume 2> /dev/null
longhaul replay > ../replayed
told | pick 'puts[*]'
