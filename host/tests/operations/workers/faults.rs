//! Servers that are killed, sleep past their lease, or lose the way to the database, in the middle of effects: each
//! effect of each run happens once, no step is lost, and every branch is that of an undisturbed run.
//!
//! `LONGHAUL_WORKER_KILLS=1000` (default 6), `LONGHAUL_WORKER_PAUSES=200` (default 2) and
//! `LONGHAUL_WORKER_PARTITIONS=200` (default 2) are the full figures. Twenty of a thousand kills are of the database.
//! `LONGHAUL_SEED` repeats what was drawn. A person answers for calls that act by looking at the receiver.

use super::lab::{Cluster, LEASE, LOOK, PATIENCE, SERVERS};
use super::network::{self, Link, Means};
use super::projects::{self, Trace};
use crate::common::{Random, number};
use crate::postgres_server::PostgresServer;
use crate::proxy::Cut;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs that are at work at once while servers are killed.
const RUNS_AT_ONCE: usize = 3;

/// The time of a call that acts, so that many kills are in the middle of one.
const CALL_TIME: Duration = Duration::from_millis(200);

/// The time of a call that acts, in which a server is stopped or cut off.
const LONG_CALL_TIME: Duration = Duration::from_millis(1_500);

/// Longest time from one kill to the next, in milliseconds.
const KILL_PAUSE_MS_MAX: u64 = 1_500;

/// Kills of the database among all of them; of a few kills each third.
const DATABASE_KILLS: u64 = 20;
const DATABASE_EVERY_MIN: u64 = 3;

/// Set in the test that runs in a namespace of its own.
const IN_NAMESPACE: &str = "LONGHAUL_TEST_IN_NAMESPACE";

fn seed() -> u64 {
    let seed = number("LONGHAUL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("LONGHAUL_SEED={seed}");
    seed
}

/// Projects that are worked on, one run each, and those that were.
struct Load {
    reference: Trace,
    begun: usize,
    working: Vec<(String, String)>,
    ended: Vec<(String, String)>,
    answers: usize,
}

impl Load {
    /// Begins with a run that nothing disturbs.
    fn new(cluster: &Cluster) -> Self {
        let reference = projects::undisturbed(cluster, "errand-undisturbed");
        Self { reference, begun: 0, working: Vec::new(), ended: Vec::new(), answers: 0 }
    }

    /// Begins the run of a new project.
    fn begin(&mut self, cluster: &Cluster) -> (String, String) {
        self.begun += 1;
        let name = format!("errand-{:05}", self.begun);
        projects::make(cluster, &name);
        let run = cluster.run(&name);
        self.working.push((name.clone(), run.clone()));
        (name, run)
    }

    /// Answers for runs that ask, and sets those aside that have ended.
    fn look(&mut self, cluster: &Cluster) {
        for (name, run) in std::mem::take(&mut self.working) {
            self.answers += projects::answer(cluster, &run);
            let set = if projects::is_completed(cluster, &run) { &mut self.ended } else { &mut self.working };
            set.push((name, run));
        }
    }

    /// Brings all to their end, and accounts for each.
    fn account(mut self, cluster: &mut Cluster) -> usize {
        let since = Instant::now();
        while !self.working.is_empty() {
            cluster.revive();
            self.look(cluster);
            assert!(since.elapsed() < PATIENCE, "{:?} do not end\n{}", self.working, cluster.printed());
            std::thread::sleep(LOOK);
        }
        for (name, run) in &self.ended {
            projects::account(cluster, name, run, &self.reference);
        }
        println!("{} runs, {} questions answered", self.ended.len(), self.answers);
        self.answers
    }
}

#[test]
fn kills_of_servers_and_of_the_database_repeat_no_effect_and_lose_no_step() {
    let kills: u64 = number("LONGHAUL_WORKER_KILLS").unwrap_or(6);
    let seed = seed();
    let mut database = PostgresServer::start(&[]);
    let url = database.database();
    let mut cluster = Cluster::start(|_| url.clone());
    let mut load = Load::new(&cluster);
    cluster.lab.fake.posts_take(CALL_TIME);
    let database_every = (kills / DATABASE_KILLS).max(DATABASE_EVERY_MIN);
    let (mut of_database, since) = (0, Instant::now());
    for kill in 1..=kills {
        let mut random = Random::new(seed, kill);
        cluster.revive();
        // Some kills follow the one before at once, while another server takes over.
        if random.below(3) > 0 {
            load.look(&cluster);
            while load.working.len() < RUNS_AT_ONCE {
                load.begin(&cluster);
            }
        }
        std::thread::sleep(Duration::from_millis(random.below(KILL_PAUSE_MS_MAX)));
        if kill % database_every == 0 {
            database.kill();
            database.begin();
            of_database += 1;
        } else {
            let at = usize::try_from(random.below(SERVERS as u64)).expect("small");
            cluster.kill(at);
            // Of some its runs are with others when it comes back.
            if random.below(3) == 0 {
                std::thread::sleep(LEASE + Duration::from_millis(random.below(1_000)));
            }
        }
    }
    let took = since.elapsed();
    cluster.lab.fake.posts_take(Duration::ZERO);
    let answers = load.account(&mut cluster);
    println!("{kills} kills, {of_database} of them of the database, in {took:?}; repeated: 0, lost: 0");
    assert!(kills < 100 || answers > 0, "kills were in the middle of calls that act");
}

#[test]
fn a_server_that_slept_past_its_lease_in_an_effect_writes_nothing_late_and_its_run_goes_on_elsewhere() {
    let pauses: usize = number("LONGHAUL_WORKER_PAUSES").unwrap_or(2);
    let database = PostgresServer::shared();
    let url = database.database();
    let mut cluster = Cluster::start(|_| url.clone());
    let mut load = Load::new(&cluster);
    for _ in 0..pauses {
        let lost =
            stopped_in_an_effect(&mut cluster, &mut load, |cluster, at| cluster.pause(at), Cluster::resume, false);
        cluster.begin(lost);
    }
    load.account(&mut cluster);
    println!("{pauses} pauses past the lease; repeated: 0, lost: 0");
}

/// Stops the server of a new run in the middle of a call that acts, waits until others have taken the run over, and
/// lets it go on, to its end. Returns the server. The call was answered meanwhile, and the answer of the person counts.
fn stopped_in_an_effect(
    cluster: &mut Cluster,
    load: &mut Load,
    stop: impl FnOnce(&mut Cluster, usize),
    go_on: impl FnOnce(&mut Cluster, usize),
    may_land: bool,
) -> usize {
    cluster.wait_until_joined();
    cluster.lab.fake.posts_take(LONG_CALL_TIME);
    let (name, run) = load.begin(cluster);
    let at = projects::wait_for_call(cluster, &name, &run);
    stop(cluster, at);
    cluster.lab.fake.posts_take(Duration::ZERO);
    let path = format!("/api/v1/runs/{run}");
    let is_over = |status: &Value| status["status"] == "completed";
    let asked = cluster.until(&path, |status| !projects::questions(status).is_empty() || is_over(status));
    // Where only the way back is cut, the answer may be stored before the server is replaced. Then nobody has to be
    // asked.
    let has_landed = may_land && is_over(&asked);
    assert!(has_landed || asked["status"] == "parked", "a call that acts waits for a person: {asked:#}");
    go_on(cluster, at);
    cluster.expect_lost(at);
    load.answers += projects::finish(cluster, &run);
    assert!(has_landed || has_resolution(cluster, &run), "the answer is that of the person, and not the late one");
    at
}

/// True when an entry of the first invocation of a run has the answer of a person.
fn has_resolution(cluster: &Cluster, run: &str) -> bool {
    let journal = cluster.get(&format!("/api/v1/runs/{run}/journal/entries?invocation=f-one%2F1%2Fgenerate"));
    let is_resolved = |entry: &Value| entry["resolution"]["happened"].is_string();
    crate::list(&journal, "entries").iter().any(is_resolved)
}

#[test]
fn a_server_that_is_cut_off_from_the_database_is_replaced_and_repeats_nothing() {
    cut_off(Means::HoldsBytes, partitions());
}

/// The same where packets are lost in place of being late: connections are neither open nor closed. It starts itself
/// once more in a network namespace, where the machine allows one.
#[test]
fn a_server_whose_packets_are_lost_is_replaced_and_repeats_nothing() {
    if std::env::var_os(IN_NAMESPACE).is_some() {
        network::enter_namespace();
        return cut_off(Means::LosesPackets, partitions().div_ceil(2));
    }
    if !network::can_lose_packets() {
        println!("not run: this machine allows no network namespace, or has no `ip rule` for ports");
        return;
    }
    // What its start fetches is not within reach from there.
    drop(PostgresServer::shared());
    let own_name = "workers::faults::a_server_whose_packets_are_lost_is_replaced_and_repeats_nothing";
    let mut again = Command::new("unshare");
    again.arg("--net").arg(std::env::current_exe().expect("this program")).args(["--exact", own_name, "--nocapture"]);
    let ended = again.env(IN_NAMESPACE, "1").status().expect("unshare starts");
    assert!(ended.success(), "in a namespace: {ended:?}");
}

fn partitions() -> usize {
    number("LONGHAUL_WORKER_PARTITIONS").unwrap_or(2)
}

fn cut_off(means: Means, partitions: usize) {
    let seed = seed();
    let database = PostgresServer::shared();
    let links: Vec<Link> = (0..SERVERS).map(|_| Link::to(database.port, means)).collect();
    let url = database.database();
    let mut cluster = Cluster::start(|at| links[at].url(&url, database.port));
    let mut load = Load::new(&cluster);
    let directions = [Cut::ToServer, Cut::ToClient, Cut::Both];
    let first = usize::try_from(Random::new(seed, 1).below(directions.len() as u64)).expect("small");
    for direction in directions.iter().cycle().skip(first).take(partitions) {
        println!("{means:?}: {direction:?}");
        let cut = |_: &mut Cluster, at: usize| links[at].cut(*direction);
        let heal = |_: &mut Cluster, at: usize| links[at].cut(Cut::Nothing);
        let may_land = matches!(direction, Cut::ToClient);
        let lost = stopped_in_an_effect(&mut cluster, &mut load, cut, heal, may_land);
        cluster.begin(lost);
    }
    load.account(&mut cluster);
    println!("{partitions} partitions by {means:?}; repeated: 0, lost: 0");
}
