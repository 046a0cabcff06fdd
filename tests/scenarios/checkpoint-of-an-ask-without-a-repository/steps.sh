# A checkpoint of an ask is taken up elsewhere without a repository.
# It used to be refused everywhere, for a branch that an ask does not have.

longhaul ask --agent one 'do alpha; put' > ../stopped 2>&1
longhaul checkpoint export "$(longhaul --json runs | pick 'items[*].run')" --output ../checkpoint.json
mkdir ../other && cp ../later/longhaul.toml ../other
longhaul --home ../other-home --project ../other checkpoint import ../checkpoint.json --signer "$(pick signed.signer < ../checkpoint.json)"
longhaul --home ../other-home --project ../other resume 2> /dev/null
longhaul --home ../other-home --project ../other --json status | pick answer.answer
