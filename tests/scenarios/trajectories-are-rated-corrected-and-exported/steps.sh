# Each invocation of an agent is a trajectory, which can be rated, corrected and exported. Nothing is executed to show it.

longhaul run > ../ran
longhaul --json trajectories list | pick 'items[*]' task agent ending model_calls | sort
longhaul --json trajectories list | pick 'items[task=one].steps[failed=true]' | wc -l
told | pick requests > ../requests
longhaul --json trajectories show f-one/1/generate | pick 'conversations[0][*].role'
longhaul --json trajectories show f-one/1/generate | pick 'conversations[0][1].content'
longhaul --json trajectories show f-one/1/generate | pick incomplete
told | pick requests | diff - ../requests
longhaul trajectories rate 0 f-one/1/generate
longhaul trajectories rate 6 f-one/1/generate
longhaul trajectories rate 4 f-none/1/generate
longhaul trajectories rate 2 f-one/1/generate
longhaul trajectories rate 5 f-two/1/generate
longhaul trajectories correct f-one/1/generate --answer 'the better answer'
longhaul --json trajectories list --rating-min 4 | pick 'items[*].task'
longhaul --json trajectories list --rating-max 2 | pick 'items[*].task'
longhaul --json trajectories list --unannotated
longhaul --json trajectories list --agent other
longhaul trajectories export | pick 'conversations[0][2].role'
longhaul trajectories export --format preference | pick . prompt[1] chosen rejected
longhaul trajectories export --format unpaired --output ../out.jsonl
pick label < ../out.jsonl | sort
longhaul trajectories export --output ../out.jsonl
