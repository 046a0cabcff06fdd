# A run is remembered, shown, exported and forgotten. What does not pass leaves no fact, and what an agent says that posted to
# a server may be the server's words.

longhaul run > ../ran
longhaul --json memory list | pick 'items[scope=fact]' key trust run
longhaul --json memory list | pick 'items[scope=episode]' value.summary value.made_by
longhaul memory show feature/two | grep -e 'words of' -e second -e step
longhaul memory export --output ../memory.json
pick . longhaul_memory < ../memory.json
pick 'memories[*].key' < ../memory.json | wc -l
longhaul memory forget feature/two
longhaul memory show feature/two
