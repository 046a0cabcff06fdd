# A finished run gives the same result, calls and fuel again. A replay asks nobody and changes nothing.

longhaul run > ../ran
told | pick requests > ../requests
longhaul --json status > ../before
longhaul --json journal | pick 'items[*]' | wc -l
longhaul replay | grep --count 'same result, calls and fuel'
longhaul --json replay | pick 'invocations[*].same' | sort | uniq -c
longhaul --json replay | pick 'invocations[*].difference' | sort | uniq -c
told | pick requests | diff - ../requests
longhaul --json status | diff - ../before
