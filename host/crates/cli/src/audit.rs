//! `longhaul audit`: the audit log, and the grants of runs compared with their use.

use super::context::Context;
use super::exit::Exit;
use super::order::print_json;
use clap::Subcommand;
use longhaul_api::operations::SecurityOperations as _;
use longhaul_api::security::GrantUsage;
use longhaul_api::security::{ListAudit, ShowGrants, VerifyAudit};
use longhaul_api::wire::security::{AuditRecordView, AuditVerificationView};
use longhaul_core::Digest;
use longhaul_core::fault::{self, bail};
use longhaul_core::text::printable;
use longhaul_report::messages::{counted, moment};
use longhaul_security::audit::AuditRecord;

/// Default number of records in a list.
const RECORDS: usize = 50;

/// Longest line, in bytes.
const LINE_BYTES_MAX: usize = 1_000;

#[derive(Subcommand, Debug)]
pub enum AuditCommand {
    /// List the newest records: approvals, grants, trust, secrets used, tokens, imports.
    Log {
        /// The most records to list.
        #[arg(long, default_value_t = RECORDS)]
        limit: usize,
    },
    /// Verify the chain of the log: each record holds the digest of the one before. Says where the chain breaks.
    Verify {
        /// A digest that an earlier `verify` printed. A record must still have it; otherwise records were cut off.
        #[arg(long, value_name = "DIGEST")]
        expect: Option<Digest>,
    },
}

/// Runs the command. Without a subcommand it shows the grants that no run of the project used, and the use of grants by
/// each run.
pub async fn run(context: &Context, command: Option<AuditCommand>) -> fault::Result<Exit> {
    match command {
        None => grants(context).await,
        Some(AuditCommand::Log { limit }) => log(context, limit).await,
        Some(AuditCommand::Verify { expect }) => verify(context, expect).await,
    }
}

async fn grants(context: &Context) -> fault::Result<Exit> {
    let grants = context.grant_usage(ShowGrants { directory: context.project.clone() }).await?;
    if context.json {
        print_json(&grants)?;
        return Ok(Exit::Done);
    }
    let GrantUsage { unused, unknown, runs } = grants;
    for run in &runs {
        let all = run.used.len() + run.unknown.len() + run.unused.len();
        outln!("run {}: used {} of {}", run.run, run.used.len(), counted(all, "grant"));
        run.used.iter().for_each(|power| outln!("  used         {power}"));
        run.unknown.iter().for_each(|power| outln!("  use unknown  {power}"));
        run.unused.iter().for_each(|power| outln!("  unused       {power}"));
    }
    if runs.is_empty() {
        outln!("no runs yet");
        return Ok(Exit::Done);
    }
    if unused.is_empty() && unknown.is_empty() {
        outln!("every grant of longhaul.toml was used by some run");
    }
    if !unknown.is_empty() {
        outln!("nothing tells whether a run used these grants:");
        unknown.iter().for_each(|power| outln!("  {power}"));
    }
    if !unused.is_empty() {
        outln!("no run used these grants; take them out of longhaul.toml:");
        unused.iter().for_each(|power| outln!("  {power}"));
    }
    Ok(Exit::Done)
}

async fn log(context: &Context, limit: usize) -> fault::Result<Exit> {
    for record in context.audit_log(ListAudit { limit }).await? {
        if context.json {
            print_json(&AuditRecordView::from(record))?;
        } else {
            outln!("{}", line(&record)?);
        }
    }
    Ok(Exit::Done)
}

/// The number, the time, what happened, and its fields.
fn line(record: &AuditRecord) -> fault::Result<String> {
    let mut fields = serde_json::to_value(&record.what)?;
    let fields = fields.as_object_mut().map(std::mem::take).unwrap_or_default();
    let what = fields.get("what").and_then(|what| what.as_str()).unwrap_or_default().replace('_', " ");
    let told = fields.iter().filter(|(name, _)| *name != "what").map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name} {text}"),
        None => format!("{name} {value}"),
    });
    let told: Vec<String> = told.collect();
    let text = format!("{:>6}  {}  {what}: {}", record.number, moment(record.at_ms), told.join(", "));
    Ok(printable(&text, LINE_BYTES_MAX))
}

async fn verify(context: &Context, expect: Option<Digest>) -> fault::Result<Exit> {
    let verified = context.verify_audit(VerifyAudit { expect }).await?;
    if context.json {
        print_json(&AuditVerificationView::from(&verified))?;
    }
    if let Some((number, how)) = &verified.broken {
        bail!("the audit log breaks at record {number}: {how}");
    }
    if verified.has_expected == Some(false) {
        bail!("the audit log has no record with that digest: records were cut off, or it is another log");
    }
    if !context.json {
        let records = counted(verified.records, "record");
        outln!("{records}, each with the digest of the one before; keep the last one: {}", verified.last);
    }
    Ok(Exit::Done)
}
