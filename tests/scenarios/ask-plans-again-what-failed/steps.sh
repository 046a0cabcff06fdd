# A planned ask plans again what fails, and says what it comes to.

longhaul ask --plan "$(cat ../later/plan.txt)" 2> /dev/null
longhaul --json status | pick 'features[*]' id status
longhaul --json status | pick answer.answer
events replan replan
longhaul replay > ../replayed
