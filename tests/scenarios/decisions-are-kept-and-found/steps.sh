# Decisions are kept with their reasons, judged by their feature and found by words.

longhaul run > ../ran
longhaul --json decisions "$(longhaul --json status | pick run)" list --limit 1000 | pick 'items[*]' by feature outcome decision | sort
longhaul --json decisions list --query "try again" | pick 'items[*]' tags[0] by reasoning | head -n 1
longhaul --json decisions list --query "which files did three" | pick 'items[*]' feature match_reason | head -n 1
longhaul --json decisions list --query "nothing of the kind"
longhaul --json decisions list --query "which files did three" | pick 'items[*].id' | head -n 1 > ../id
longhaul decisions feedback "$(cat ../id)" --score -7 --lesson "look for the fox first"
longhaul --json decisions show "$(cat ../id)" | pick . score outcome
longhaul decisions show none
longhaul decisions feedback "$(cat ../id)"
longhaul decisions show ""
# A lesson is searched, too.
longhaul --json decisions list --query fox | pick 'items[*].id' | head -n 1 | diff - ../id
