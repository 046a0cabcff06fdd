//! Two examples of each command, which stand at the end of its help.
//!
//! A test holds that every command has them, and that the command line reads them. They stand in one table, in the
//! order of the commands, so that they are written and read together.

/// A command without `longhaul`, and its examples.
type Entry = (&'static str, [&'static str; 2]);

const EXAMPLES: &[Entry] = &[
    ("init", ["longhaul init", "longhaul init --name shop"]),
    ("new", ["longhaul new shop", "longhaul new shop --name web-shop"]),
    ("onboard", ["longhaul onboard", "longhaul onboard --yes --provider recorded --directory demo"]),
    ("projects", ["longhaul projects", "longhaul projects --json"]),
    ("project id", ["longhaul project id", "longhaul --project ../shop project id"]),
    ("project same-as", ["longhaul project same-as ../shop", "longhaul project same-as p-1c0d7e0b2f61"]),
    ("trust", ["longhaul trust", "longhaul trust --trust"]),
    ("trust key", ["longhaul trust key", "longhaul trust key --json"]),
    ("trust list", ["longhaul trust list", "longhaul trust list --json"]),
    ("trust add", ["longhaul trust add RWQf6LRCGA9i53ml", "longhaul --home /srv/longhaul trust add RWQf6LRCGA9i53ml"]),
    ("trust remove", ["longhaul trust remove ../shop", "longhaul trust remove RWQf6LRCGA9i53ml"]),
    ("audit", ["longhaul audit", "longhaul audit --json"]),
    ("audit log", ["longhaul audit log", "longhaul audit log --limit 200"]),
    ("audit verify", ["longhaul audit verify", "longhaul audit verify --json"]),
    ("run", ["longhaul run", "longhaul run --plan-only"]),
    ("check", ["longhaul check", "longhaul check --online"]),
    (
        "ask",
        ["longhaul ask 'Which licences do our dependencies have?'", "longhaul ask --plan 'Compare three job queues'"],
    ),
    (
        "steer",
        ["longhaul steer r-1c0d7e 'Use the standard library alone'", "longhaul steer :login 'Keep the old form'"],
    ),
    ("cancel", ["longhaul cancel r-1c0d7e", "longhaul cancel r-1c0d7e:login"]),
    ("resume", ["longhaul resume", "longhaul resume r-1c0d7e --retry-failing"]),
    ("revert", ["longhaul revert --to 0b4adcd284", "longhaul revert --to 0b4adcd284 --stash"]),
    ("fork", ["longhaul fork --at feature:login --model large", "longhaul fork r-1c0d7e --at entry:plan:7 --dry-run"]),
    ("log", ["longhaul log --run r-1c0d7e --limit 10", "longhaul log 0b4adcd284"]),
    ("diff", ["longhaul diff", "longhaul diff r-1c0d7e login --stat"]),
    ("merge", ["longhaul merge --dry-run", "longhaul merge r-1c0d7e"]),
    ("attach", ["longhaul attach", "longhaul attach r-1c0d7e --events"]),
    ("pause", ["longhaul pause", "longhaul pause r-1c0d7e"]),
    ("abandon", ["longhaul abandon", "longhaul abandon r-1c0d7e --reason 'the goal has changed'"]),
    ("answer", ["longhaul answer --text 'The second one'", "longhaul answer r-1c0d7e --feature mail --did-not-happen"]),
    ("approvals list", ["longhaul approvals list", "longhaul approvals list r-1c0d7e --json"]),
    ("approvals show", ["longhaul approvals show a-93f0", "longhaul approvals show a-93f0 --json"]),
    ("approvals answer", ["longhaul approvals answer a-93f0 y", "longhaul approvals answer a-93f0 n"]),
    ("approvals revoke", ["longhaul approvals revoke r-1c0d7e 1", "longhaul approvals revoke r-1c0d7e 2 --json"]),
    ("status", ["longhaul status", "longhaul status r-1c0d7e --json"]),
    ("runs", ["longhaul runs", "longhaul runs --archived --json"]),
    ("runs archive", ["longhaul runs archive r-1c0d7e", "longhaul runs archive r-1c0d7e r-93f0a2"]),
    ("runs unarchive", ["longhaul runs unarchive r-1c0d7e", "longhaul runs unarchive r-1c0d7e r-93f0a2"]),
    ("ps", ["longhaul ps", "longhaul ps --history 10"]),
    ("top", ["longhaul top", "longhaul top --once"]),
    ("workers", ["longhaul workers", "longhaul workers --json"]),
    ("metrics", ["longhaul metrics", "longhaul metrics --json"]),
    ("report", ["longhaul report", "longhaul report r-1c0d7e --format html --output report.html"]),
    ("compare", ["longhaul compare r-1c0d7e r-93f0a2", "longhaul compare r-1c0d7e r-93f0a2 r-5be041 --html runs.html"]),
    ("journal", ["longhaul journal --invocation f-login/1/generate", "longhaul journal --at feature:login"]),
    ("replay", ["longhaul replay", "longhaul replay r-1c0d7e --invocation f-login/1/generate"]),
    ("rehearse", ["longhaul rehearse --plugin ./coder.wasm --live", "longhaul rehearse --plugin coder@2.0.0 r-1c0d7e"]),
    ("move", ["longhaul move r-1c0d7e --plugin coder@2.0.0", "longhaul move --plugin coder --yes"]),
    ("features", ["longhaul features", "longhaul features --checks"]),
    ("features list", ["longhaul features list", "longhaul features r-1c0d7e list"]),
    ("features waves", ["longhaul features waves", "longhaul features waves --json"]),
    (
        "features add",
        [
            "longhaul features add logout --instruction 'Add a button that logs out' --check unit",
            "longhaul features add logout --criterion 'The session ends' --depends-on login",
        ],
    ),
    (
        "features edit",
        ["longhaul features edit login --title 'Log in by mail'", "longhaul features edit login --priority 9"],
    ),
    ("features drop", ["longhaul features drop logout", "longhaul features r-1c0d7e drop logout"]),
    ("features accept", ["longhaul features accept p-1", "longhaul features accept p-2 --directory ../tool"]),
    ("features reject", ["longhaul features reject p-1", "longhaul features reject p-1 --why 'out of scope'"]),
    ("features recheck", ["longhaul features recheck", "longhaul features recheck login"]),
    ("features kept", ["longhaul features kept login", "longhaul features r-1c0d7e kept login"]),
    ("decisions", ["longhaul decisions", "longhaul decisions --query 'which database'"]),
    ("decisions list", ["longhaul decisions list", "longhaul decisions list --limit 5"]),
    ("decisions show", ["longhaul decisions show d-4f", "longhaul decisions show d-4f --json"]),
    (
        "decisions feedback",
        [
            "longhaul decisions feedback d-4f --outcome success",
            "longhaul decisions feedback d-4f --outcome partial --lesson 'Ask for the schema first'",
        ],
    ),
    ("checkpoint list", ["longhaul checkpoint list", "longhaul checkpoint list r-1c0d7e --every 10"]),
    ("checkpoint show", ["longhaul checkpoint show r-1c0d7e", "longhaul checkpoint show run.json"]),
    (
        "checkpoint export",
        [
            "longhaul checkpoint export r-1c0d7e --output run.json",
            "longhaul checkpoint export r-1c0d7e --save before-upgrade",
        ],
    ),
    (
        "checkpoint import",
        [
            "longhaul checkpoint import run.json --signer RWQf6LRCGA9i53ml",
            "longhaul checkpoint import before-upgrade --saved",
        ],
    ),
    ("gc", ["longhaul gc --dry-run --verbose", "longhaul gc --runs-older-than 30d"]),
    ("backup", ["longhaul backup longhaul.backup", "longhaul backup longhaul.backup --with-secrets --verbose"]),
    (
        "restore",
        [
            "longhaul --home new restore longhaul.backup --signer RWQf6LRCGA9i53ml",
            "longhaul --home new restore longhaul.backup --signer RWQf6LRCGA9i53ml --with-tokens",
        ],
    ),
    ("store migrate", ["longhaul store migrate --to postgres", "longhaul store migrate --to redb"]),
    ("store reopen", ["longhaul store reopen", "longhaul store reopen --json"]),
    ("graph new", ["longhaul graph new planets", "longhaul graph new planets --dir .:/data:ro"]),
    ("graph list", ["longhaul graph list", "longhaul graph list --json"]),
    ("graph remove", ["longhaul graph remove planets", "longhaul graph remove planets load"]),
    (
        "graph add",
        ["longhaul graph add planets --file notebook.py", "longhaul graph add planets load --source 'x = 1'"],
    ),
    (
        "graph change",
        ["longhaul graph change planets load --source 'x = 2'", "longhaul graph change planets load --file load.py"],
    ),
    ("graph run", ["longhaul graph run planets", "longhaul graph run planets --keep-going"]),
    ("graph stale", ["longhaul graph stale planets", "longhaul graph stale planets --json"]),
    ("graph replay", ["longhaul graph replay planets load", "longhaul graph replay planets load --keep-going"]),
    ("graph diagnose", ["longhaul graph diagnose planets", "longhaul graph diagnose planets load --no-model"]),
    ("graph patch", ["longhaul graph patch planets", "longhaul graph patch planets load --tries 3"]),
    ("graph show", ["longhaul graph show planets", "longhaul graph show planets load"]),
    ("graph history", ["longhaul graph history planets", "longhaul graph history planets --json"]),
    (
        "graph export",
        ["longhaul graph export planets", "longhaul graph export planets --format dot --output planets.dot"],
    ),
    (
        "agent add",
        [
            "longhaul agent add counter --python count.py",
            "longhaul agent add news --ask 'What changed since the last run?' --by research",
        ],
    ),
    (
        "agent update",
        ["longhaul agent update counter --timeout-ms 60000", "longhaul agent update counter --python count.py"],
    ),
    ("agent list", ["longhaul agent list", "longhaul agent list --active"]),
    ("agent show", ["longhaul agent show counter", "longhaul agent show counter --json"]),
    ("agent activate", ["longhaul agent activate counter", "longhaul agent activate counter --json"]),
    ("agent deactivate", ["longhaul agent deactivate counter", "longhaul agent deactivate counter --json"]),
    ("agent remove", ["longhaul agent remove counter", "longhaul agent remove counter --json"]),
    ("agent execute", ["longhaul agent execute counter", "longhaul agent execute counter --input '{\"n\": 3}'"]),
    (
        "agent artifact show",
        ["longhaul agent artifact show counter", "longhaul agent artifact show counter --version 2"],
    ),
    (
        "agent artifact set",
        [
            "longhaul agent artifact set counter --state '{\"n\": 3}'",
            "longhaul agent artifact set counter --file state.json --version 4",
        ],
    ),
    (
        "agent artifact clear",
        ["longhaul agent artifact clear counter", "longhaul agent artifact clear counter --version 4"],
    ),
    (
        "agent artifact history",
        ["longhaul agent artifact history counter", "longhaul agent artifact history counter --json"],
    ),
    ("agent tasks", ["longhaul agent tasks counter", "longhaul agent tasks counter --limit 5"]),
    (
        "schedule add",
        [
            "longhaul schedule add nightly --agent counter --cron '0 3 * * *' --timezone Europe/Berlin",
            "longhaul schedule add often --agent counter --every 10m",
        ],
    ),
    ("schedule list", ["longhaul schedule list", "longhaul schedule list --json"]),
    ("schedule show", ["longhaul schedule show nightly", "longhaul schedule show nightly --fires 10"]),
    ("schedule remove", ["longhaul schedule remove nightly", "longhaul schedule remove nightly --json"]),
    ("schedule pause", ["longhaul schedule pause nightly", "longhaul schedule pause nightly --json"]),
    ("schedule resume", ["longhaul schedule resume nightly", "longhaul schedule resume nightly --json"]),
    ("schedule run-now", ["longhaul schedule run-now nightly", "longhaul schedule run-now nightly --json"]),
    ("schedule tasks", ["longhaul schedule tasks", "longhaul schedule tasks --agent counter --limit 5"]),
    ("schedule retry", ["longhaul schedule retry t-7", "longhaul schedule retry t-7 --json"]),
    ("schedule skipped", ["longhaul schedule skipped nightly", "longhaul schedule skipped nightly --limit 5"]),
    ("schedule status", ["longhaul schedule status", "longhaul schedule status --at-once 2"]),
    ("schedule work", ["longhaul schedule work", "longhaul schedule work --for 2h"]),
    ("memory list", ["longhaul memory list", "longhaul memory list --prefix build"]),
    ("memory search", ["longhaul memory search 'how are tests run'", "longhaul memory search licence --limit 5"]),
    ("memory show", ["longhaul memory show build/command", "longhaul memory show build/command --json"]),
    ("memory promote", ["longhaul memory promote build/command", "longhaul memory promote build/command r-1c0d7e"]),
    ("memory forget", ["longhaul memory forget build/command", "longhaul memory forget build/command r-1c0d7e"]),
    ("memory export", ["longhaul memory export", "longhaul memory export --output memory.json"]),
    (
        "memory conversation",
        [
            "longhaul memory conversation f-login/1/generate",
            "longhaul memory conversation f-login/1/generate r-1c0d7e --json",
        ],
    ),
    ("trajectories list", ["longhaul trajectories list", "longhaul trajectories list --all-runs --rating-min 4"]),
    (
        "trajectories show",
        ["longhaul trajectories show f-login/1/generate", "longhaul trajectories show f-login/1/generate --json"],
    ),
    (
        "trajectories rate",
        ["longhaul trajectories rate 5 f-login/1/generate", "longhaul trajectories rate 2 f-login/1/generate r-1c0d7e"],
    ),
    (
        "trajectories correct",
        [
            "longhaul trajectories correct f-login/1/generate --answer 'The form has two fields'",
            "longhaul trajectories correct f-login/1/generate r-1c0d7e --answer -",
        ],
    ),
    (
        "trajectories export",
        [
            "longhaul trajectories export --output runs.jsonl",
            "longhaul trajectories export --all-runs --format preference",
        ],
    ),
    (
        "plugin new",
        [
            "longhaul plugin new word-count --kind tool --lang python",
            "longhaul plugin new careful --kind evaluator --lang rust --into plugins",
        ],
    ),
    ("plugin build", ["longhaul plugin build", "longhaul plugin build word-count --watch"]),
    (
        "plugin pack",
        ["longhaul plugin pack tool.wasm", "longhaul plugin pack tool.wasm --manifest tool.toml --output packed.wasm"],
    ),
    (
        "plugin install",
        [
            "longhaul plugin install word-count.wasm",
            "longhaul plugin install https://example.com/word-count.wasm --yes",
        ],
    ),
    ("plugin remove", ["longhaul plugin remove word-count", "longhaul plugin remove word-count@0.1.0"]),
    ("plugin list", ["longhaul plugin list", "longhaul plugin list --json"]),
    ("plugin inspect", ["longhaul plugin inspect word-count.wasm", "longhaul plugin inspect react"]),
    ("plugin check", ["longhaul plugin check word-count.wasm", "longhaul plugin check react"]),
    (
        "plugin run",
        [
            "longhaul plugin run word-count.wasm describe",
            "longhaul plugin run files call --input @call.json --dir .:/work",
        ],
    ),
    ("plugin test", ["longhaul plugin test word-count --filter empty", "longhaul plugin test recorded --update"]),
    ("plugin schema", ["longhaul plugin schema", "longhaul plugin schema --json"]),
    (
        "scenario record",
        [
            "longhaul scenario record -o recorded",
            "longhaul scenario record r-1c0d7e -i f-sum/1/generate --at 3..9 -o part --replace 'ACME-[0-9]+=ACME'",
        ],
    ),
    ("schema", ["longhaul schema", "longhaul schema longhaul.toml"]),
    ("runtimes pull", ["longhaul runtimes pull", "longhaul runtimes pull python"]),
    ("runtimes list", ["longhaul runtimes list", "longhaul runtimes list --json"]),
    ("packages lock", ["longhaul packages lock", "longhaul packages lock --project ~/work/site"]),
    ("packages list", ["longhaul packages list", "longhaul packages list --json"]),
    ("serve", ["longhaul serve", "longhaul serve --listen 127.0.0.1:8717"]),
    ("token add", ["longhaul token add laptop --scope run", "longhaul token add dashboard --scope read --expires 30d"]),
    ("token list", ["longhaul token list", "longhaul token list --json"]),
    ("token remove", ["longhaul token remove laptop", "longhaul token remove laptop --json"]),
    ("mcp", ["longhaul mcp", "longhaul mcp --project ../shop"]),
    ("mcp accept", ["longhaul mcp accept shouter", "longhaul mcp accept shouter --all"]),
    ("completions", ["longhaul completions bash", "longhaul completions fish"]),
    ("skill install", ["longhaul skill install", "longhaul skill install --directory ~/.claude/skills/longhaul"]),
    (
        "secrets set",
        [
            "longhaul secrets set github --host https://api.github.com",
            "longhaul secrets set search-key --tool search --any-project",
        ],
    ),
    ("secrets list", ["longhaul secrets list", "longhaul secrets list --json"]),
    ("secrets remove", ["longhaul secrets remove github", "longhaul secrets remove github --json"]),
    ("conform", ["longhaul conform word-count.wasm", "longhaul conform word-count.wasm --crash --junit conform.xml"]),
    (
        "crashtest",
        ["longhaul crashtest --random 50 --html crashes.html", "longhaul crashtest ../shop --points 'git.*,tool.*'"],
    ),
    ("models list", ["longhaul models list", "longhaul models list --json"]),
    ("models test", ["longhaul models test", "longhaul models test small"]),
    ("models pull", ["longhaul models pull smollm2", "longhaul models pull minilm"]),
    (
        "exec",
        [
            "longhaul exec job.ts --module lib/names.ts --rich --timeout-ms 10000",
            "longhaul exec job.py --runtime native --venv .venv --rich --json",
        ],
    ),
    ("doctor", ["longhaul doctor", "longhaul doctor --project ."]),
    ("detect", ["longhaul detect 'Write a parser for ISO dates, with tests'", "longhaul detect -"]),
    (
        "do",
        [
            "longhaul do 'Write a parser for ISO dates, with tests' --auto",
            "longhaul do 'Write a parser for ISO dates, with tests' --auto --dir dates",
        ],
    ),
];

/// The end of the help of a command. A command that only has others below it shows an example of the first two of them,
/// or both of its only one.
pub(super) fn of(path: &str) -> Option<String> {
    let own = EXAMPLES.iter().find(|(command, _)| *command == path).map(|(_, examples)| examples.to_vec());
    let lines = own.unwrap_or_else(|| below(&format!("{path} ")));
    (!path.is_empty() && !lines.is_empty()).then(|| format!("Examples:\n  {}", lines.join("\n  ")))
}

/// Examples of commands that begin with a text.
fn below(prefix: &str) -> Vec<&'static str> {
    let found: Vec<&Entry> = EXAMPLES.iter().filter(|(command, _)| command.starts_with(prefix)).collect();
    match &found[..] {
        [(_, both)] => both.to_vec(),
        several => several.iter().map(|(_, [first, _])| *first).take(2).collect(),
    }
}
