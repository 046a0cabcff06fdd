# A policy that makes no sense is refused with its place.

cp ../later/field.toml longhaul.toml && longhaul run
cp ../later/variant.toml longhaul.toml && longhaul run
cp ../later/where.toml longhaul.toml && longhaul run
