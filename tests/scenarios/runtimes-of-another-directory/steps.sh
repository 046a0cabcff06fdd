# Runtimes that runs take from a directory of LONGHAUL_PLUGINS are listed with it. They were listed as missing.

longhaul --json runtimes list | pick . name state path
mkdir ../given && printf '%2048s' > ../given/python.wasm
LONGHAUL_PLUGINS="$(cd .. && pwd)/given" longhaul runtimes list | grep -A 1 '^python'
