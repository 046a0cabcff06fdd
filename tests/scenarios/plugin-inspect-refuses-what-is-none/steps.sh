# A plugin is looked at before it is run, and what is none is refused.

longhaul plugin inspect ../bad.wasm
printf 'not wasm at all' > ../bad.wasm && longhaul plugin inspect ../bad.wasm
printf '\0asm\001\0\0\0' > ../bad.wasm && longhaul plugin inspect ../bad.wasm
