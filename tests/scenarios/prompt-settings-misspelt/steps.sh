# A file of settings that is wrong is named.

mkdir -p ../.config/longhaul && cp ../later/config.toml ../.config/longhaul
longhaul do 'Write 3 reports, one a month'
