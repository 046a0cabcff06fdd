//! Linkers, each made once for an engine and shared by all plugins of its world.
//!
//! A linker names the host functions of a world: some 250 of WASI, of HTTP and of the contract, which takes about as
//! long as mapping the compiled code of a small plugin. The functions hold no state, which is in the store of each
//! call, so that plugins can share them. Nothing here grants anything, and no linker is changed once it is made: a
//! plugin gets those functions of it that its component imports.

use crate::edition::Edition;
use crate::role::Role;
use longhaul_capabilities::{Ctx, http, wasi};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasmtime::component::Linker;

/// The linkers of one engine, for one list of editions: another list may link other functions for the same version.
#[derive(Default)]
pub(crate) struct Linkers {
    made: Mutex<HashMap<LinkedWorld, Arc<Linker<Ctx>>>>,
}

/// The imports that a linker offers.
#[derive(PartialEq, Eq, Hash)]
enum LinkedWorld {
    /// The linker of a role, in the version of an edition.
    Plugin(String, Role),
    /// The linker of a program of WASI.
    Command,
}

impl Linkers {
    /// The linker for plugins of a role that were built for an edition.
    pub(crate) fn of_role(
        &self,
        engine: &wasmtime::Engine,
        role: Role,
        edition: &dyn Edition,
    ) -> wasmtime::Result<Arc<Linker<Ctx>>> {
        self.get(LinkedWorld::Plugin(edition.version().to_owned(), role), || {
            let mut linker = Linker::new(engine);
            wasi::add_to_linker(&mut linker, role.is_pure())?;
            if !role.is_pure() {
                http::add_to_linker(&mut linker)?;
            }
            edition.link(role, &mut linker)?;
            Ok(linker)
        })
    }

    /// The linker for programs of WASI.
    pub(crate) fn of_command(&self, engine: &wasmtime::Engine) -> wasmtime::Result<Arc<Linker<Ctx>>> {
        self.get(LinkedWorld::Command, || {
            let mut linker = Linker::new(engine);
            wasi::add_to_linker(&mut linker, false)?;
            http::add_to_linker(&mut linker)?;
            Ok(linker)
        })
    }

    /// The linker of a world. Two callers that need the same one at the same time make it once.
    fn get(
        &self,
        world: LinkedWorld,
        make: impl FnOnce() -> wasmtime::Result<Linker<Ctx>>,
    ) -> wasmtime::Result<Arc<Linker<Ctx>>> {
        let mut made = self.lock();
        if let Some(linker) = made.get(&world) {
            return Ok(Arc::clone(linker));
        }
        let linker = Arc::new(make()?);
        made.insert(world, Arc::clone(&linker));
        Ok(linker)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<LinkedWorld, Arc<Linker<Ctx>>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::compile_config;
    use crate::edition::{Exports, V0_1};
    use longhaul_bindings::VERSION;
    use wasmtime::StoreContextMut;
    use wasmtime::component::InstancePre;

    /// An edition of the same version as `V0_1`, which links nothing.
    struct Empty;

    impl Edition for Empty {
        fn version(&self) -> &str {
            VERSION
        }

        fn link(&self, _: Role, _: &mut Linker<Ctx>) -> wasmtime::Result<()> {
            Ok(())
        }

        fn exports(&self, _: Role, _: &InstancePre<Ctx>) -> wasmtime::Result<Exports> {
            Err(wasmtime::Error::msg("it has none"))
        }
    }

    #[test]
    fn a_linker_is_made_once_for_each_role_and_offers_no_more_than_its_world() {
        let engine = wasmtime::Engine::new(&compile_config()).unwrap();
        let linkers = Linkers::default();
        let of = |role| linkers.of_role(&engine, role, &V0_1).unwrap();
        let (tool, agent) = (of(Role::Tool), of(Role::Agent));
        assert!(Arc::ptr_eq(&tool, &of(Role::Tool)));
        assert!(!Arc::ptr_eq(&tool, &agent));
        let has = |linker: &Linker<Ctx>, interface: &str| {
            let mut copy = linker.clone();
            // A name that a linker has cannot be given to something else.
            let given = copy
                .allow_shadowing(false)
                .root()
                .func_wrap(interface, |_: StoreContextMut<'_, Ctx>, (): ()| wasmtime::Result::Ok(()));
            given.is_err()
        };
        let conversation = "longhaul:plugin/conversation@0.1.0";
        assert!(has(&agent, conversation));
        assert!(!has(&tool, conversation), "a tool asks no model");
        let command = linkers.of_command(&engine).unwrap();
        assert!(!has(&command, "longhaul:plugin/log@0.1.0"), "a program is no plugin");
        assert!(Arc::ptr_eq(&command, &linkers.of_command(&engine).unwrap()));
    }

    #[test]
    fn a_fault_of_an_edition_is_told_each_time_and_nothing_is_kept_of_it() {
        struct Twice;

        impl Edition for Twice {
            fn version(&self) -> &str {
                VERSION
            }

            fn link(&self, role: Role, linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
                V0_1.link(role, linker)?;
                V0_1.link(role, linker)
            }

            fn exports(&self, role: Role, pre: &InstancePre<Ctx>) -> wasmtime::Result<Exports> {
                V0_1.exports(role, pre)
            }
        }

        let engine = wasmtime::Engine::new(&compile_config()).unwrap();
        let linkers = Linkers::default();
        assert!(linkers.of_role(&engine, Role::Tool, &Twice).is_err());
        assert!(linkers.of_role(&engine, Role::Tool, &Twice).is_err());
        assert!(linkers.of_role(&engine, Role::Tool, &Empty).is_ok());
    }
}
