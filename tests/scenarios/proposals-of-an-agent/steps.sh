# What an agent proposes, a person accepts or rejects; a proposal changes nothing by itself.

longhaul run > ../ran
grep --count 'proposed: add feature `two`' ../ran
longhaul --json features | pick 'items[*]' id status
answers | pick proposal > ../ids
longhaul --json features --proposals | pick 'items[*].reason' | sort
longhaul --json features --proposals | pick 'items[*].id' | sort > ../proposed && sort ../ids | diff - ../proposed
longhaul features accept "$(sed -n 1p ../ids)"
longhaul features reject "$(sed -n 2p ../ids)" --why 'not now'
# The feature passed meanwhile: what was proposed cannot be done any more.
longhaul features accept "$(sed -n 3p ../ids)"
# The run that had ended has work again.
longhaul --json features | pick 'items[*]' id status
longhaul features accept "$(sed -n 1p ../ids)"
longhaul features accept "$(sed -n 2p ../ids)"
longhaul features reject p-none
longhaul features accept "$(sed -n 4p ../ids)" --directory ../other
cat ../other/GOAL.md
git -C ../other status --porcelain
longhaul features --proposals | grep --only-matching -e 'accepted ' -e 'rejected ' -e 'open ' | tr -d ' ' | sort | uniq -c
