# A file that is no plugin is refused by what it is.

sed -i 's|plugin = "doer"|plugin = "../bad.wasm"|' longhaul.toml && git commit -qam agent
printf 'not wasm at all' > ../bad.wasm && longhaul run
printf '' > ../bad.wasm && longhaul run
# A corrupt section.
printf '\0asm\015\0\001\0\001\377\377\377' > ../bad.wasm && longhaul run
doer="${LONGHAUL_PLUGINS#*:}/doer.wasm" && head -c "$(($(wc -c < "$doer") / 2))" "$doer" > ../bad.wasm && longhaul run 2>&1 | sed 's/offset 0x[0-9a-f]*/offset N/'
# A flipped byte in its types.
doer="${LONGHAUL_PLUGINS#*:}/doer.wasm" && cp "$doer" ../bad.wasm && printf "\\$(printf %o $((255 - $(od -An -tu1 -j40 -N1 "$doer"))))" | dd of=../bad.wasm bs=1 seek=40 conv=notrunc 2> /dev/null && longhaul run 2>&1 | grep --only-matching -e 'cannot be compiled' -e 'offset 0x28'
# A core module.
printf '\0asm\001\0\0\0' > ../bad.wasm && longhaul run
# A component of no role.
printf '\0asm\015\0\001\0' > ../bad.wasm && longhaul run
# 500 MB.
truncate --size 500M ../bad.wasm && longhaul run
rm ../bad.wasm && longhaul run
# Nothing of the project was changed.
git status --porcelain
longhaul run --plan-only
