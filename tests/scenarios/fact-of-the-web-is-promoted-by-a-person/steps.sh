# A fact of the web is told only after a person promoted it.
# Words of a page used to be told to every later run, labelled and no more.

longhaul run > ../ran
later longhaul.toml GOAL.md
longhaul run > ../ran
longhaul --json journal --invocation plan | pick 'finished.result.{}.returned.notes.{}.memory.facts'
longhaul --json journal --invocation plan | pick 'finished.result.{}.returned.notes.{}.memory.episodes[0].summary'
longhaul memory promote feature/two
longhaul memory show feature/two | grep 'words of'
longhaul run > ../ran
longhaul --json journal --invocation plan | pick 'finished.result.{}.returned.notes.{}.memory.facts[0]' about words_of says
