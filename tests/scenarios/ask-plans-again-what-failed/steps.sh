# A planned ask plans again what fails, and says what it comes to.

longhaul ask --plan "$(cat ../later/plan.txt)" 2> /dev/null
longhaul --json status | pick 'features[*]' spec.id status
longhaul --json status | pick synthesis.answer
events replanned replan
longhaul replay > ../replayed
