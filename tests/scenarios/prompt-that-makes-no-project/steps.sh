# Below the confidence, or switched off, `do` says so in one line and makes nothing.

longhaul do 'Write 3 reports, one a month'
longhaul do --auto 'What is the time?'
mkdir -p ../.config/longhaul && cp ../later/template.toml ../.config/longhaul
echo '[auto]' > ../.config/longhaul/config.toml && echo 'projects = false' >> ../.config/longhaul/config.toml
longhaul do 'Write 3 reports, one a month'
longhaul do --auto 'What is the time?'
cp ../later/config.toml ../.config/longhaul
longhaul do 'What is the time?'
longhaul --json do 'What is the time?' | pick . project detected.use_harness
ls
