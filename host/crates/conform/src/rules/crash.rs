//! Cuts of journals: a call that is cut at an entry and resumed has to end as one that was not.

use super::pure::{clock_that_ended, differs};
use crate::probe::Probe;
use crate::report::RuleVerdict;
use crate::rules::every::called;
use longhaul_core::text::count;
use longhaul_testkit::JournalCut;

/// Entries of one call at which its journal is cut, from the first one on: each cut is two calls.
const ENTRIES_MAX: usize = 100;

pub(crate) async fn survives(probe: &Probe) -> Result<RuleVerdict, String> {
    if !probe.role().is_pure() {
        let why = format!("a call of a {} is one entry in the journal of its caller", probe.role().name());
        return Ok(RuleVerdict::Skip(why));
    }
    let (mut cuts, mut entries) = (0, 0);
    for call in probe.good() {
        let name = called(&call);
        let whole = probe.call(&probe.scene(), call.clone()).await?;
        if let Some(clock) = clock_that_ended(&whole) {
            return Ok(RuleVerdict::Fail(format!(
                "{name} was ended by `{clock}`, a clock, so it has no end to compare"
            )));
        }
        for (entry, _) in (1..).zip(whole.calls.iter().take(ENTRIES_MAX)) {
            entries += 1;
            for answered in [false, true] {
                let cut = probe.scene().call_cut(call.clone(), JournalCut { entry, answered }).await;
                let Some(resumed) = cut.map_err(|error| error.to_string())? else { continue };
                probe.examine(&resumed.done);
                let when = if answered { "after" } else { "before" };
                let place = format!("{name}, cut {when} the answer of entry {entry} and resumed");
                if let Some(again) = resumed.repeated.first() {
                    return Ok(RuleVerdict::Fail(format!(
                        "{place}: entry {again} was answered, and was executed again"
                    )));
                }
                if let Some(what) = differs(&whole, &resumed.done, true) {
                    return Ok(RuleVerdict::Fail(format!("{place}: {what}")));
                }
                cuts += 1;
            }
        }
    }
    Ok(match cuts {
        0 => {
            let text = "its good calls call no import; name calls that do with [[conform.calls]] of the manifest, and \
                        their answers with [conform.script]";
            RuleVerdict::Skip(text.to_owned())
        }
        cuts => RuleVerdict::Pass(format!(
            "{} of {}: the same results, calls and fuel, and no finished effect again",
            count(cuts, "cut"),
            count(entries, "journal entry")
        )),
    })
}
