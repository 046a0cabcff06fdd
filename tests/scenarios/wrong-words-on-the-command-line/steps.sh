# Wrong words on the command line are answered.

longhaul 2>&1 | grep Usage
longhaul fly
longhaul run --fast
longhaul run extra
longhaul answer --happened 1 --skip
longhaul journal --after many
longhaul status
longhaul status r-gone
longhaul resume r-gone
longhaul attach r-gone
longhaul pause r-gone
longhaul abandon r-gone
longhaul journal r-gone
longhaul replay r-gone
longhaul features r-gone
longhaul answer r-gone --skip
longhaul plugin inspect nope 2>&1 | sed 's/ in .*Build/ in ... Build/'
longhaul models pull nope
git status --porcelain
longhaul --project nowhere run
