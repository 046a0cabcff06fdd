# What cannot be done with a run that is over is said, and changes nothing.

longhaul run > ../ran
longhaul --json status > ../before
longhaul answer --happened '{}'
longhaul answer --text yes
longhaul pause
longhaul abandon
longhaul features add one --instruction again
longhaul features add 'a b' --instruction x --check wrote_one
longhaul features add six --check wrote_one
longhaul features edit nine --title x
longhaul features drop nine
longhaul journal --invocation f-nine/1/generate
longhaul replay --invocation f-one/1/generate --with gone.wasm
longhaul --json status | diff - ../before
