# A configuration is read strictly: each slip is said with its place, and the project stays as it was.

longhaul run --recorded gone.jsonl
# No TOML.
spoil 's@\[project\]@[project@' && longhaul run
# A field misspelt.
spoil 's@tools = \["files", "poster"\]@tols = []@' && longhaul run
# A table misspelt.
spoil 's@\[checks\]@[check]@' && longhaul run
# A limit misspelt.
spoil 's@iterations_max@iteration_max@' && longhaul run
# A limit of nothing.
spoil 's@iterations_max = 2@iterations_max = 0@' && longhaul run
# A name with a slash.
spoil 's@"kept"@"ke/pt"@' && longhaul run
# A model of nothing.
spoil 's@models = \["fake"\]@models = ["gone"]@' && longhaul run
# A tool of nothing.
spoil 's@"poster"\]@"gone"]@' && longhaul run
# No agent.
spoil 's@\[agents.code\]@[planner]@' && longhaul run
# A key of nothing.
spoil 's@id = "fake"@id = "fake"\napi_key_env = "NO_SUCH_KEY"@' && longhaul run
# A provider of nothing.
spoil 's@provider = "openai"@provider = "oracle"@' && longhaul run
# A recording of nothing.
spoil 's@\[models.fake\]@[models.old]\nprovider = "recorded"\nfile = "gone.jsonl"\n\n[planner]\nplugin = "initializer"\nmodels = ["old"]\n\n[models.fake]@' && longhaul run
# A host of everything.
spoil 's@hosts = \["http://@hosts = ["*", "http://@' && longhaul run
# A check without a command.
spoil 's@argv = \["grep", "-q", "a fox", "three.txt"\]@argv = []@' && longhaul run
git status --porcelain
git rm -q longhaul.toml && git commit -qm 'no file' && longhaul run
