# What has not ended has nothing to compare with. What has ended can be played again meanwhile.

(LONGHAUL_CRASH_AT=tool.before-call:2 longhaul run > ../ran 2>&1; test $? = 137) 2> /dev/null
longhaul replay
longhaul replay --invocation f-one/1/generate
longhaul replay --invocation f-nine/1/generate
