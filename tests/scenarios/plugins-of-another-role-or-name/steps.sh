# A plugin of another role, of no name and at no path is refused before a run.

spoil 's|plugin = "doer"|plugin = "files"|' && longhaul run
spoil 's|\[agents.code\]|[planner]\nplugin = "doer2"\n\n[agents.code]|' && longhaul run
spoil 's|"doer"|"nope"|' && longhaul run 2>&1 | sed 's/ in .*Build/ in ... Build/'
spoil 's|"doer"|"/tmp"|' && longhaul run
git status --porcelain
spoil 's|"doer"|"./nope.wasm"|' && longhaul run
