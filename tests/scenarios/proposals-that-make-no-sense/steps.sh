# An agent cannot mark its own feature, and what makes no sense is not proposed.

longhaul run > ../ran
answers
longhaul features --proposals
