# Runtimes that runs take from a directory of LONGHAUL_PLUGINS are listed with it, and so are others that runs do not
# use. They were listed as missing, and the others not at all.

longhaul --json runtimes list | pick . name state path
mkdir ../given && printf '%2048s' > ../given/python.wasm
LONGHAUL_PLUGINS="$(cd .. && pwd)/given" longhaul runtimes list | grep -A 1 '^python'
mkdir ../other && cp ../given/python.wasm ../other
LONGHAUL_PLUGINS="$(cd .. && pwd)/given:$(cd .. && pwd)/other" longhaul runtimes list | grep -A 2 '^python'
