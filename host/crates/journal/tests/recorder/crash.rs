//! A guest that is killed at every commit, again and again, and its effects by then.

use crate::fakes::{Host, Stop, call, finished, invocation, resolve, said};
use longhaul_core::journal::EffectClass::{self, Acts, Idempotent, ReadOnly, Verifiable};
use longhaul_core::journal::{CallVerdict, EntryHandle, Journal as _, JournalError, Resolution};
use longhaul_core::store::Batch;
use longhaul_journal::{Opened, Recorder};
use std::collections::{BTreeMap, BTreeSet};

/// The calls of a guest: members of one list are called at once.
const PROGRAM: &[&[(EffectClass, &str)]] = &[
    &[(ReadOnly, "look")],
    &[(Acts, "send")],
    &[(Verifiable, "write")],
    &[(ReadOnly, "m1"), (Acts, "m2"), (Idempotent, "m3"), (Verifiable, "m4"), (ReadOnly, "m5")],
    &[(Idempotent, "pay")],
    &[(Acts, "send again")],
];

/// A fake world that counts.
#[derive(Default)]
struct World {
    /// Number of executions of each effect, by its name.
    done: BTreeMap<String, u32>,
    /// Keys of the idempotent effects.
    keys: BTreeSet<(String, String)>,
    /// Effects whose answer the journal acknowledged.
    completed: BTreeSet<String>,
    /// Number of questions to a person.
    questions: u32,
}

impl World {
    fn act(&mut self, class: EffectClass, name: &str, handle: &EntryHandle) -> String {
        assert!(!self.completed.contains(name), "I1: `{name}` was completed and is done again");
        *self.done.entry(name.to_owned()).or_default() += 1;
        if class == Idempotent {
            self.keys.insert((name.to_owned(), handle.key.clone()));
        }
        format!("\"{name} done\"")
    }

    fn happened(&self, name: &str) -> bool {
        self.done.contains_key(name)
    }
}

/// Runs one life of the process: the guest runs from its start until it ends or is killed.
async fn live(recorder: &Recorder, world: &mut World) -> Result<String, JournalError> {
    let mut seen = Vec::new();
    for members in PROGRAM {
        let mut nexts = Vec::new();
        for (class, name) in *members {
            nexts.push((*class, *name, recorder.ask(call(*class, name)).await?));
        }
        let mut answers = BTreeMap::new();
        // Answers come in another order than calls.
        for (class, name, next) in nexts.into_iter().rev() {
            answers.insert(name, answer(recorder, world, class, name, next).await?);
        }
        seen.extend(answers.into_values());
    }
    Ok(seen.join(" "))
}

async fn answer(
    recorder: &Recorder,
    world: &mut World,
    class: EffectClass,
    name: &str,
    next: CallVerdict,
) -> Result<String, JournalError> {
    let (handle, answer) = match next {
        CallVerdict::Answered(answer) => return Ok(answer),
        CallVerdict::Happened(handle, output) => (handle, output),
        CallVerdict::Verify(handle, _) if world.happened(name) => (handle, format!("\"{name} done\"")),
        CallVerdict::Go(handle) | CallVerdict::Verify(handle, _) => {
            if class == Verifiable {
                recorder.prepared(&handle, "digests".to_owned()).await?;
            }
            let answer = world.act(class, name, &handle);
            (handle, answer)
        }
        CallVerdict::Skipped(_) => panic!("nobody said so"),
    };
    recorder.answer(handle, answer.clone()).await?;
    world.completed.insert(name.to_owned());
    Ok(answer)
}

/// Runs lives until the invocation has ended; the store of life n stops as `stops` says.
async fn lives(stops: &[Stop]) -> (World, Host, String) {
    let mut world = World::default();
    let mut host = Host::new();
    for life in 0.. {
        assert!(life < 100, "it never ends");
        if let Some(stop) = stops.get(life) {
            host.store.stop(*stop);
        }
        let recorder = match host.open().unwrap() {
            Opened::Running(recorder) => recorder,
            Opened::Finished { finished, .. } => return (world, host, finished.result),
        };
        match live(&recorder, &mut world).await {
            Ok(result) => {
                recorder.check_end().unwrap();
                let _ = recorder.finish(finished(&result), Batch::new()).await;
            }
            Err(JournalError::Store(_)) => {}
            Err(JournalError::Parked(question)) => {
                world.questions += 1;
                host = host.restart();
                let told = tell(&world, question.entry);
                resolve(&*host.store, question.entry, told).await.unwrap();
            }
            Err(why) => panic!("{why}"),
        }
        host = host.restart();
    }
    unreachable!("the loop ends by returning")
}

/// A person looks at the world and reports truthfully.
fn tell(world: &World, entry: u32) -> Resolution {
    let calls: Vec<_> = PROGRAM.iter().copied().flatten().collect();
    let (_, name) = calls[entry as usize - 1];
    if world.happened(name) { Resolution::Happened(format!("\"{name} done\"")) } else { Resolution::DidNotHappen }
}

async fn check(stops: &[Stop]) -> World {
    let (world, host, result) = lives(stops).await;
    let (_, whole, expected) = lives(&[]).await;
    assert_eq!(result, expected, "{stops:?}");
    for (class, name) in PROGRAM.iter().copied().flatten() {
        let done = world.done[*name];
        match class {
            Acts | Verifiable => assert_eq!(done, 1, "I2: `{name}` with {stops:?}"),
            // Sent again at most once for each kill.
            ReadOnly | Idempotent => {
                assert!((1..=1 + stops.len()).contains(&(done as usize)), "`{name}` with {stops:?}")
            }
        }
    }
    assert_eq!(world.keys.len(), 2, "one key for each idempotent call, with {stops:?}");
    check_replay(&host).await;
    let names = |host: &Host| {
        let found = longhaul_journal::entries(&*host.store, &invocation(), 0, 100).unwrap();
        found.into_iter().map(|(entry, e)| (entry, e.asked.name, e.answered.unwrap().answer)).collect::<Vec<_>>()
    };
    assert_eq!(names(&host), names(&whole), "{stops:?}");
    world
}

/// I3: replaying gives the same answers and does nothing.
async fn check_replay(host: &Host) {
    let recorder = host.replay("engine 1");
    for (class, name) in PROGRAM.iter().copied().flatten() {
        assert_eq!(said(&recorder.ask(call(*class, name)).await), format!("answered \"{name} done\""));
    }
    recorder.check_end().unwrap();
}

/// Commits of an undisturbed life.
async fn commits_of_one_life() -> usize {
    let host = Host::new();
    let recorder = host.run();
    let result = live(&recorder, &mut World::default()).await.unwrap();
    recorder.finish(finished(&result), Batch::new()).await.unwrap();
    host.store.commits()
}

#[tokio::test]
async fn killed_once_at_every_commit_each_effect_happens_as_often_as_its_class_allows() {
    let commits = commits_of_one_life().await;
    let mut questions = 0;
    for commit in 0..=commits {
        questions += check(&[Stop::Before(commit)]).await.questions;
        questions += check(&[Stop::Within(commit + 1)]).await.questions;
    }
    assert!(commits > 15, "only {commits} commits were tried");
    assert!(questions > 0, "nothing was ever in doubt");
}

#[tokio::test]
async fn killed_twice_at_any_two_commits_nothing_happens_twice_either() {
    let commits = commits_of_one_life().await;
    for first in 0..=commits {
        for second in 0..=commits {
            check(&[Stop::Within(first + 1), Stop::Before(second)]).await;
            check(&[Stop::Before(first), Stop::Within(second + 1)]).await;
        }
    }
}
