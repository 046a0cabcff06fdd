//! The models of one run: those that it uses, as configured, or a recording in their place.
//!
//! All sets of a process share their queues and adaptations, since a rate is a limit of the operator's and not of a
//! run. Nothing is sent here, and nothing of the process is read: the program passes a [`ProgramEnvironment`].

use crate::config::{ModelEnvironment, asked, build};
use crate::recorded::AskedLog;
use crate::{Adaptations, ModelConfig, ModelsError, Provider, Queues, Recorded, Recording};
use longhaul_core::fault::Fault;
use longhaul_core::model::{Model, Models};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

/// The queues of requests, for all runs of this process.
static QUEUES: LazyLock<Queues> = LazyLock::new(Queues::default);

/// The adaptations to providers, for all runs of this process.
static ADAPTATIONS: LazyLock<Adaptations> = LazyLock::new(Adaptations::default);

/// The window of a recording in place of a configured model.
const RECORDED_CONTEXT_TOKENS: u32 = 128_000;

/// The program's environment for its models.
#[derive(Clone, Debug)]
pub struct ProgramEnvironment {
    /// Reads a variable of the environment.
    pub variable: fn(&str) -> Option<String>,
    /// The directory of pulled models and of cached replies.
    pub cache: PathBuf,
    /// The program that serves a local model, and its first arguments, for example
    /// `["/usr/bin/longhaul", "model-child"]`.
    pub child_command: Vec<OsString>,
    /// True when that program was built with local models.
    pub has_local: bool,
    /// The file that gets a line for each request which a recording in place of the models answers. None: nothing is
    /// written.
    pub asked_log: Option<PathBuf>,
}

/// Options for the models of a run, beside the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelOptions {
    /// Answer every model from this recording.
    pub replay_from: Option<PathBuf>,
    /// Record the replies of every model to this file.
    pub record_to: Option<PathBuf>,
}

/// The models of a run.
pub struct ModelSet(HashMap<String, Arc<dyn Model>>);

impl Models for ModelSet {
    fn model(&self, name: &str) -> Option<Arc<dyn Model>> {
        self.0.get(name).cloned()
    }
}

impl ModelSet {
    /// Makes one model by its name. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ModelsError`] about the name, a setting, a key or a file.
    pub fn one(
        configs: &BTreeMap<String, ModelConfig>,
        name: &str,
        project: &Path,
        environment: &ProgramEnvironment,
    ) -> Result<Arc<dyn Model>, ModelsError> {
        let mut models = live(configs, vec![name.to_owned()], project, environment)?;
        models.remove(name).ok_or_else(|| ModelsError::Unknown { model: name.to_owned() })
    }

    /// Makes the models `used` of those that are configured. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ModelsError`] about a setting, a key or a file.
    pub fn build(
        configs: &BTreeMap<String, ModelConfig>,
        used: Vec<String>,
        project: &Path,
        options: &ModelOptions,
        environment: &ProgramEnvironment,
    ) -> Result<Self, ModelsError> {
        let mut models: HashMap<String, Arc<dyn Model>> = match options.replay_from.as_deref() {
            Some(path) => {
                let recording = Arc::new(Recording::read(path)?);
                let log = environment.asked_log.as_deref().map(AskedLog::open).transpose()?.map(Arc::new);
                let recorded =
                    || Arc::new(Recorded::new(Arc::clone(&recording), RECORDED_CONTEXT_TOKENS).logging(log.clone()));
                used.into_iter().map(|name| (name, recorded() as Arc<dyn Model>)).collect()
            }
            None => live(configs, used, project, environment)?,
        };
        if let Some(path) = &options.record_to {
            for model in models.values_mut() {
                *model = Arc::new(Recording::record(Arc::clone(model), path)?);
            }
        }
        Ok(Self(models))
    }

    /// The faults of the models `used`, each with the name of its table, if it has one.
    #[must_use]
    pub fn faults(
        configs: &BTreeMap<String, ModelConfig>,
        used: Vec<String>,
        project: &Path,
        options: &ModelOptions,
        environment: &ProgramEnvironment,
    ) -> Vec<(Option<String>, String)> {
        if let Some(recording) = &options.replay_from {
            return Recording::read(recording).err().map(|error| (None, error.to_string())).into_iter().collect();
        }
        let mut found: Vec<(Option<String>, String)> = Vec::new();
        for name in used {
            if let Err(error) = live(configs, vec![name.clone()], project, environment) {
                let text = format!("{:#}", Fault::from(error));
                // Several may have the same fault.
                if !found.iter().any(|(_, known)| *known == text) {
                    found.push((Some(name), text));
                }
            }
        }
        found
    }
}

fn live(
    configs: &BTreeMap<String, ModelConfig>,
    names: Vec<String>,
    project: &Path,
    environment: &ProgramEnvironment,
) -> Result<HashMap<String, Arc<dyn Model>>, ModelsError> {
    let surroundings = ModelEnvironment {
        variable: &environment.variable,
        base: project,
        cache: &environment.cache,
        child_command: environment.child_command.clone(),
        queues: &QUEUES,
        adaptations: &ADAPTATIONS,
    };
    let asked = asked(configs, &names);
    let mut asked = configs.iter().filter(|(name, _)| asked.contains(*name));
    asked.try_for_each(|(name, model)| refuse_unbuilt(name, model, environment))?;
    build(configs, names, &surroundings)
}

/// A local model needs a build that has one: better reported before a run than by its first request.
fn refuse_unbuilt(name: &str, model: &ModelConfig, environment: &ProgramEnvironment) -> Result<(), ModelsError> {
    if matches!(model.provider, Provider::Local(_)) && !environment.has_local {
        return Err(ModelsError::LocalNotBuilt { model: name.to_owned() });
    }
    Ok(())
}
