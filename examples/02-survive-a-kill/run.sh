#!/usr/bin/env bash
# Kills a run with SIGKILL right after a branch moved, before anything noted it, and resumes it.
#
# Needs `longhaul` on PATH, or its path in LONGHAUL. The model is a recording of the small one, so that the
# moment of the kill is the same each time; everything else is real. Leaves nothing behind.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
longhaul=${LONGHAUL:-longhaul}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

mkdir "$place/project"
cp "$here"/../01-first-run/{GOAL.md,longhaul.toml,recording.jsonl} "$place/project"
cd "$place/project"
git init --quiet --initial-branch main .
git add --all
git -c user.name=you -c user.email=you@localhost commit --quiet --message "The goal"

set +e
# The second commit's branch has moved, and the journal does not know it yet.
LONGHAUL_CRASH_AT=git.after-ref-move:2 "$longhaul" --home "$place/home" run --recorded recording.jsonl > "$place/first.txt" 2>&1
echo "the first process ended with $? (137 is SIGKILL)"
"$longhaul" --home "$place/home" resume > "$place/second.txt" 2>&1
echo "the second one ended with $? (3: some features do not pass)"
set -e
git log --format='%s' main..longhaul/first-run
echo "commits that were made twice: $(git log --format='%(trailers:key=Longhaul-Effect)' main..longhaul/first-run | grep . | sort | uniq -d | wc -l)"
"$longhaul" --home "$place/home" replay > "$place/replay.txt"
echo "invocations that replay alike: $(grep -c 'same result, calls and fuel' "$place/replay.txt") of $(wc -l < "$place/replay.txt")"
