# What is forgotten is gone wherever it was, unless a kind is named.
# Only the first kind used to be looked at: what a run had noted for itself under the key of a fact stayed.

longhaul run > ../ran
longhaul --json memory list --prefix port | pick 'items[*]' scope key value
longhaul --json memory show port | pick 'items[*]' scope key value
longhaul memory forget port --kind working
longhaul --json memory list --prefix port | pick 'items[*]' scope key value
longhaul memory show port --kind episode
longhaul run > ../ran
longhaul --json memory list --prefix port | pick 'items[*]' scope key value
longhaul --json memory forget port | pick 'items[*]' scope key value
longhaul memory list --prefix port
