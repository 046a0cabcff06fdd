# An agent whose model follows a script: first replies in their order, then replies to what it is asked.

longhaul run
git show longhaul/kept:greeting.txt longhaul/kept:farewell.txt
told | pick requests.model
