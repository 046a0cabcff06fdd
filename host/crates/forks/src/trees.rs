//! The files of the sessions that were under way at the point of a fork.
//!
//! They are known where the store has the tree as it was, which `[run] tree_history` of `longhaul.toml` keeps, and where
//! nothing could have changed the commit that the session began from. Any other point is refused: a fork on other files
//! than those that its journals tell of would go wrong in silence.

use crate::cuts::JournalCut;
use crate::effects::call_of;
use crate::points::PointInRun;
use longhaul_config::Config;
use longhaul_core::fault::{self, Fault, bail};
use longhaul_core::journal::{EffectClass, ImportCall};
use longhaul_core::store::Store;
use longhaul_core::{InvocationId, RunId};
use longhaul_harness::state::Session;
use longhaul_harness::{Lane, WorkKind};
use longhaul_records::record::{self, CarriedTree};

/// Entries that are read at once.
const PAGE: usize = 1_000;

/// A tree of a fork.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForkTree {
    /// Its number among those of the run.
    pub(crate) number: u32,
    /// The commit that its session began from.
    pub(crate) base: String,
    /// The files that differ from it; none: it has no others.
    pub(crate) files: Option<CarriedTree>,
}

/// The trees of the sessions at the point. `configs` are those that the run worked with, as far as they are known.
pub(crate) fn trees(
    store: &dyn Store,
    run: &RunId,
    configs: &[&Config],
    at: &PointInRun,
    cuts: &[JournalCut],
) -> fault::Result<Vec<ForkTree>> {
    let mut found = Vec::new();
    for lane in &at.state.lanes {
        let Some((session, base)) = in_need(lane, cuts) else { continue };
        let (number, base) = (session.slot, base.to_owned());
        // Before the point where the journal is cut before it.
        let at_ms = cuts.iter().find(|cut| cut.key == lane.work.key()).map_or(at.at_ms, |cut| cut.at_ms);
        let kept = record::tree_at(store, run, number, at_ms)?.filter(|tree| tree.base == base);
        if kept.is_none()
            && let Some(changed_by) = changed_by(store, run, configs, session, lane, at_ms)?
        {
            bail!(Fault::conflict(format!(
                "the files of feature `{feature}` at this point are not kept, since `{changed_by}` may have changed them; \
                 name the point at which it began, `feature:{feature}`, or have later runs keep them with [run] \
                 tree_history = true",
                feature = session.feature
            )));
        }
        found.push(ForkTree { number, base, files: kept });
    }
    Ok(found)
}

/// The session of a lane whose next work needs its files, and the commit that it began from.
fn in_need<'a>(lane: &'a Lane, cuts: &[JournalCut]) -> Option<(&'a Session, &'a str)> {
    let session = lane.session.as_ref()?;
    let is_made = || cuts.iter().any(|cut| cut.key == lane.work.key() && cut.made.is_some());
    match lane.work.job {
        // Both begin by bringing the tree to a commit.
        WorkKind::Prepare { .. } | WorkKind::Propose { .. } => None,
        // The other run keeps what is given up there.
        WorkKind::Discard { .. } => None,
        WorkKind::Commit { .. } if is_made() => None,
        _ => Some((session, session.base.as_deref()?)),
    }
}

/// The call by which the tree of a session may have changed until then; none if there is none.
fn changed_by(
    store: &dyn Store,
    run: &RunId,
    configs: &[&Config],
    session: &Session,
    lane: &Lane,
    at_ms: u64,
) -> fault::Result<Option<String>> {
    if session.merges > 0 {
        return Ok(Some("merge".to_owned()));
    }
    let prefix = prefix(&lane.work.name, &session.feature);
    let mut names = vec![format!("{prefix}/propose")];
    for round in 1..=session.round {
        let own = format!("{prefix}/{round}/generate");
        let handed_off = (1..).map(|number: u32| format!("{own}/h{number}"));
        // Each but the first has a journal, or there is none after it.
        for name in std::iter::once(own.clone()).chain(handed_off) {
            let has_journal = longhaul_journal::began(store, &InvocationId::of_action(run, &name))?.is_some();
            names.push(name);
            if !has_journal {
                break;
            }
        }
    }
    for name in names {
        let attempts = (1..).map(|attempt: u32| if attempt == 1 { name.clone() } else { format!("{name}/t{attempt}") });
        for key in attempts {
            let of = InvocationId::of_action(run, &key);
            if longhaul_journal::began(store, &of)?.is_none() {
                break;
            }
            if let Some(call) = writing_call(store, configs, of, at_ms)? {
                return Ok(Some(call));
            }
        }
    }
    Ok(None)
}

/// The beginning of the keys of a session: that of its work, up to the feature and the number of the session.
fn prefix<'a>(name: &'a str, feature: &str) -> &'a str {
    let own = format!("f-{feature}");
    let Some(rest) = name.strip_prefix(&own) else { return name };
    let session = rest.strip_prefix("/e").and_then(|rest| rest.split('/').next());
    let digits = session.filter(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()));
    let end = own.len() + digits.map_or(0, |digits| digits.len() + 2);
    &name[..end]
}

/// The first call of an invocation, or of its delegations, that may have written into the tree by then.
fn writing_call(store: &dyn Store, configs: &[&Config], of: InvocationId, at_ms: u64) -> fault::Result<Option<String>> {
    let below = longhaul_journal::delegations(store, &of)?;
    for of in std::iter::once(of).chain(below) {
        let mut after = 0;
        loop {
            let page = longhaul_journal::entries(store, &of, after, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            after = *last;
            let writes = page.iter().map(|(_, entry)| &entry.asked).find(|asked| may_write(configs, asked, at_ms));
            if let Some(asked) = writes {
                return Ok(Some(call_of(asked)));
            }
        }
    }
    Ok(None)
}

fn may_write(configs: &[&Config], asked: &ImportCall, at_ms: u64) -> bool {
    let call = call_of(asked);
    let tool = call.split('.').next().unwrap_or_default();
    let is_call = asked.name == crate::answers::TOOL_CALL && asked.at_ms <= at_ms;
    let may_change = || configs.iter().any(|config| config.may_change_tree(tool));
    is_call && asked.class != EffectClass::ReadOnly && may_change()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::Digest;

    #[test]
    fn the_keys_of_a_session_begin_as_those_of_its_work() {
        assert_eq!(prefix("f-sum/2/generate/h1", "sum"), "f-sum");
        assert_eq!(prefix("f-sum/e1/2/judge", "sum"), "f-sum/e1");
        assert_eq!(prefix("f-sum/e12/commit", "sum"), "f-sum/e12");
        assert_eq!(prefix("f-sum/edit", "sum"), "f-sum");
    }

    #[test]
    fn a_call_may_write_by_the_tool_and_its_class() {
        let text = "[project]\nname = \"p\"\n[agents.code]\nplugin = \"react\"\n[tools.files]\nplugin = \"files\"\n\
                    directories = [{ guest = \"/work\", access = \"write\" }]\n[tools.poster]\nplugin = \"poster\"\n";
        let config = Config::parse_pinned(text).expect("a configuration");
        let now = Config::parse_pinned(&text.replace("\"write\"", "\"read\"")).expect("a configuration");
        let writes_by = |configs: &[&Config], name: &str, summary: &str, class, at_ms| {
            let asked = ImportCall {
                name: name.to_owned(),
                summary: summary.to_owned(),
                arguments: Digest::of(b""),
                class,
                prepared: None,
                fuel_used: 0,
                at_ms,
                attempt: 1,
            };
            may_write(configs, &asked, 5)
        };
        let writes = |name: &str, summary: &str, class, at_ms| writes_by(&[&now, &config], name, summary, class, at_ms);
        assert!(!writes_by(&[&now], "tools.call", "files.write {}", EffectClass::Idempotent, 5));
        assert!(writes("tools.call", "files.write {}", EffectClass::Idempotent, 5), "it could when the run began");
        assert!(!writes("tools.call", "files.write {}", EffectClass::Idempotent, 6), "it came later");
        assert!(!writes("tools.call", "files.read {}", EffectClass::ReadOnly, 5));
        assert!(!writes("tools.call", "poster.post {}", EffectClass::Acts, 5), "it has no tree");
        assert!(writes("tools.call", "server.run {}", EffectClass::Acts, 5), "nobody knows what it may do");
        assert!(!writes("artifact.save", "", EffectClass::Idempotent, 5));
    }
}
