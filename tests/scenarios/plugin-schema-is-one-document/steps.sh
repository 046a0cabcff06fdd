# The schema of plugin.toml is one document of JSON. Each line after the first had a bar before it.

longhaul plugin schema | pick . title required
longhaul --json plugin schema | pick . properties.world.enum
longhaul plugin schema | head -n 1
