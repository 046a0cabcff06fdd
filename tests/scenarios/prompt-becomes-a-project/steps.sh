# A prompt that is worth it becomes a project that runs. The agent does nothing, so the run ends incomplete.

mkdir -p ../.config/longhaul && cp ../later/template.toml ../later/config.toml ../.config/longhaul
longhaul do 'Write 3 reports, one a month' > ../ran
head -n 1 ../ran
grep '^feature all' ../ran
cat write-3-reports-one-a/GOAL.md
git -C write-3-reports-one-a status --porcelain
echo '[auto]' > ../.config/longhaul/config.toml && echo 'template = "template.toml"' >> ../.config/longhaul/config.toml
longhaul do --auto --dir deep/here 'Write 3 reports, one a month' > ../ran
ls deep/here
longhaul do --auto --dir deep/here 'Write 3 reports, one a month'
