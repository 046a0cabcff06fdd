# Each configuration file has a JSON Schema for editors, which is one document.

longhaul schema
longhaul --json schema
longhaul schema longhaul.toml | pick . title required
longhaul --json schema server.toml | pick properties.server.description
longhaul schema resources.toml | pick additionalProperties
longhaul schema plugin.toml | pick required
