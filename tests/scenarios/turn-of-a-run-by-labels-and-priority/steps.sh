# A file names the labels of servers that its runs need, and their priority: a check shows both, and a wrong one is refused.

longhaul check
longhaul --json check | pick 'overview.turn[*]'
sed 's@"gpu"@"GPU"@; s@= 7@= 10@' longhaul.toml > ../changed && cp ../changed longhaul.toml && longhaul check
