# A run is remembered, shown, exported and forgotten. What does not pass leaves no fact, and what an agent says that posted to
# a server may be the server's words.

longhaul run > ../ran
longhaul --json memory list | pick '[shelf=fact]' key note.trust note.run note.step
longhaul --json memory list | pick '[shelf=episode]' note.value.summary note.value.made_by
longhaul memory show feature/two | grep -e 'words of' -e second
longhaul memory export --output ../memory.json
pick . longhaul_memory < ../memory.json
pick 'memories[*].key' < ../memory.json | wc -l
longhaul memory forget feature/two
longhaul memory show feature/two
