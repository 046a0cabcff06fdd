//! API tokens: creation, list, removal and lookup.
//!
//! A token is `lh_`, 16 digits that say which one it is, `_`, and 64 digits that are 256 bits of the system's
//! randomness. Only the digest of the latter is kept, so neither the store nor a backup of it lets anybody in, and a
//! token is shown once. It refuses to say whether a token was unknown, wrong or over: who has none learns nothing.

use super::{Service, ServiceOperations};
use longhaul_api::operations::TokenOperations;
use longhaul_api::tokens::{AccessToken, AddToken, IssuedToken, ListTokens, NewToken, RemoveToken, TokenList};
use longhaul_core::Digest;
use longhaul_core::fault::{self, Context as _, Fault, bail};
use longhaul_core::store::{Batch, Key, Op, Table};
use longhaul_core::text::truncate;
use longhaul_security::audit::AuditEvent;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

/// Tokens of one data directory. A further one is refused.
pub const TOKENS_MAX: usize = 1_000;

/// Bytes of a token's name.
const NAME_BYTES_MAX: usize = 64;

/// The beginning of every token, by which one that leaks is recognised.
const PREFIX: &str = "lh_";

/// Digits that say which token it is, and digits that only its holder knows.
const ID_DIGITS: usize = 16;
const SECRET_DIGITS: usize = 64;

/// The token that a client sent, in its parts.
struct PresentedToken<'a> {
    id: &'a str,
    secret: &'a str,
}

impl<'a> PresentedToken<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is = |text: &str, digits: usize| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        (is(id, ID_DIGITS) && is(secret, SECRET_DIGITS)).then_some(Self { id, secret })
    }
}

/// A token as it is kept.
#[derive(Serialize, Deserialize)]
struct StoredToken {
    #[serde(flatten)]
    token: AccessToken,
    /// The digest of its secret digits.
    digest: Digest,
}

#[async_trait::async_trait]
impl TokenOperations for ServiceOperations<'_> {
    async fn add_token(&self, request: AddToken) -> fault::Result<NewToken> {
        self.0.add_token(request).await
    }

    async fn tokens(&self, ListTokens {}: ListTokens) -> fault::Result<TokenList> {
        let mut tokens: Vec<AccessToken> = self.0.kept_tokens()?.into_iter().map(|(_, kept)| kept.token).collect();
        tokens.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(TokenList { tokens })
    }

    async fn remove_token(&self, RemoveToken { name }: RemoveToken) -> fault::Result<TokenList> {
        self.0.remove_token(&name).await
    }
}

impl Service {
    /// The token that a client sent; none if it is invalid, for whatever reason.
    pub fn token(&self, sent: &str) -> fault::Result<Option<AccessToken>> {
        let Some(PresentedToken { id, secret }) = PresentedToken::parse(sent) else { return Ok(None) };
        let Some(bytes) = self.host.store.get(Table::States, &key(id))? else { return Ok(None) };
        let kept: StoredToken = serde_json::from_slice(&bytes).or_internal(|| "a token is damaged")?;
        let said = Digest::of(secret.to_ascii_lowercase().as_bytes());
        let is_it: bool = said.as_bytes().ct_eq(kept.digest.as_bytes()).into();
        let is_over = kept.token.expires_ms.is_some_and(|until| until <= self.host.clock.now_ms());
        Ok((is_it && !is_over).then_some(kept.token))
    }

    /// Changes with each token that is removed, so that whoever was let in by one is looked at again.
    pub fn tokens_removed(&self) -> watch::Receiver<u64> {
        self.tokens_removed.subscribe()
    }

    async fn add_token(&self, AddToken { name, mut scopes, lasts_ms }: AddToken) -> fault::Result<NewToken> {
        check_name(&name)?;
        scopes.sort_unstable();
        scopes.dedup();
        if scopes.is_empty() {
            bail!(Fault::invalid("a token without a scope allows nothing; give --scope read, run, approve or admin"));
        }
        // Two must not get one name.
        let _alone = self.locks.take(["tokens".to_owned()]).await;
        let tokens = self.kept_tokens()?;
        if tokens.iter().any(|(_, kept)| kept.token.name == name) {
            bail!(Fault::conflict(format!(
                "there is a token `{name}`; remove it with `longhaul token remove {name}`, or choose another name"
            )));
        }
        if tokens.len() >= TOKENS_MAX {
            bail!(Fault::conflict(format!(
                "there are {TOKENS_MAX} tokens, the most; remove one with `longhaul token remove NAME`"
            )));
        }
        let created_ms = self.host.clock.now_ms();
        let (id, secret) = (digits(&self.host.fresh_seed()[..ID_DIGITS / 2]), digits(&self.host.fresh_seed()));
        let expires_ms = lasts_ms.map(|lasts| created_ms.saturating_add(lasts));
        let token = AccessToken { name, scopes, created_ms, expires_ms };
        let kept = StoredToken { token: token.clone(), digest: Digest::of(secret.as_bytes()) };
        self.host.store.commit(Batch::new().insert(Table::States, key(&id), serde_json::to_vec(&kept)?)).await?;
        let (name, scopes) = (token.name.clone(), token.scopes.iter().map(|scope| scope.as_str().to_owned()).collect());
        self.host.audit.note(AuditEvent::TokenMade { name, scopes }).await?;
        Ok(NewToken { token, shown: IssuedToken::of(&format!("{PREFIX}{id}_{secret}")) })
    }

    async fn remove_token(&self, name: &str) -> fault::Result<TokenList> {
        let found = self.kept_tokens()?.into_iter().find(|(_, kept)| kept.token.name == name);
        let (row, kept) = found
            .or_unknown(|| format!("there is no token `{}`; `longhaul token list` lists them", truncate(name, 80)))?;
        let mut batch = Batch::new();
        batch.push(Op::Delete(Table::States, Key::from_bytes(row)));
        self.host.store.commit(batch).await?;
        self.tokens_removed.send_modify(|removed| *removed += 1);
        self.host.audit.note(AuditEvent::TokenRemoved { name: kept.token.name.clone() }).await?;
        Ok(TokenList { tokens: vec![kept.token] })
    }

    /// Each with its row.
    fn kept_tokens(&self) -> fault::Result<Vec<(Vec<u8>, StoredToken)>> {
        let found = self.host.store.scan(Table::States, &Key::of("tokens"), None, TOKENS_MAX)?;
        let read = |(row, bytes): (Vec<u8>, Vec<u8>)| {
            Ok::<_, Fault>((row, serde_json::from_slice(&bytes).or_internal(|| "a token is damaged")?))
        };
        found.into_iter().map(read).collect()
    }
}

fn key(id: &str) -> Key {
    Key::of("tokens").and(&id.to_ascii_lowercase())
}

fn check_name(name: &str) -> fault::Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(fits) {
        bail!(Fault::invalid(format!(
            "`{}` cannot be a token's name; use up to {NAME_BYTES_MAX} letters, digits, `-`, `_` and `.`",
            truncate(name, 80)
        )));
    }
    Ok(())
}

fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_token_is_not_even_looked_for() {
        let whole = format!("lh_{}_{}", "a".repeat(16), "b".repeat(64));
        assert!(PresentedToken::parse(&whole).is_some());
        for wrong in ["", "lh_", &whole[1..], &whole[..80], &format!("{whole}0"), &whole.replace('b', "g")] {
            assert!(PresentedToken::parse(wrong).is_none(), "{wrong}");
        }
    }
}
