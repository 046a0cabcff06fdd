# An altered plugin is told where it asks something else, and held against every invocation of its role: each round of the
# agent and of its sub-agents, and nobody else's.

longhaul run > ../ran
told | pick requests > ../requests
longhaul replay --invocation f-one/1/generate --with "${LONGHAUL_PLUGINS#*:}/doer2.wasm" | sed 's/entry [0-9]*/entry N/'
longhaul replay --with "${LONGHAUL_PLUGINS#*:}/poster.wasm"
longhaul replay --with "${LONGHAUL_PLUGINS#*:}/doer2.wasm" > ../ran
grep --count 'diverged at entry' ../ran
wc -l < ../ran
told | pick requests | diff - ../requests
longhaul replay > ../ran
