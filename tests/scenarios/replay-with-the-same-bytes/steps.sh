# The same bytes from a file are the same component.

longhaul run > ../ran
longhaul replay --invocation f-one/1/generate --with "${LONGHAUL_PLUGINS#*:}/doer.wasm"
