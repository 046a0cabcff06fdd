# What the steps of scenarios have beside `longhaul`, `pick` and `told`; see README.md.

# git as it would be on any machine.
git() {
    env GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=Test GIT_AUTHOR_EMAIL=test@example.com \
        GIT_COMMITTER_NAME=Test GIT_COMMITTER_EMAIL=test@example.com git "$@"
}

# Takes files of the folder `later` into the project, and commits them where it is a repository.
later() {
    for file in "$@"; do cp "../later/$file" .; done
    if [ -d .git ]; then git add --all && git commit --quiet --message later; fi
}

# Answers of the calls that an agent made, in their order.
answers() {
    longhaul --json journal --invocation "${1:-f-one/1/generate}" | pick 'finished.result.{}.returned.output.{}[*]'
}

# Ids of the approvals that are open, in the order in which they were asked.
open() {
    longhaul --json approvals | pick 'approvals[status=open].id'
}

# Answers the first open approval.
reply() {
    longhaul approvals answer "$(open | head -n 1)" "$@"
}

# Events of the newest run of a type, and fields of what they say.
events() {
    kind=$1 && shift
    longhaul --json attach | pick "[type=$kind].payload" "$@"
}

# Makes one change, written for sed, of longhaul.toml as it was at first, and commits it.
spoil() {
    git show "$(git rev-list --max-parents=0 HEAD):longhaul.toml" > longhaul.toml &&
        sed -i "$1" longhaul.toml && git commit --quiet --all --message spoiled
}
