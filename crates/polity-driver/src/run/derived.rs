//! What a manifest tells besides the scenario and follows from it, and from which build a run is.

use super::{Build, Engine, Folder, Manifest, activation_of};
use crate::DriveError;
use polity_kernel::scenario::{Assembled, Scenario};
use polity_kernel::tree::Node;

impl Engine<'_> {
    /// Compares what a manifest tells besides the scenario with what follows from the scenario: it is derived, and never taken on trust.
    pub(super) fn check_derived(
        &self,
        folder: &Folder,
        manifest: &Manifest,
        machine: &Assembled,
    ) -> Result<(), DriveError> {
        let wrong = |key: &str, there: String, derived: String| {
            Err(DriveError::Folder(format!(
                "{}: `{key}` is {there}, but its scenario says {derived}; put it back as it was",
                folder.path().join("manifest.json").display()
            )))
        };
        let seed = Scenario::read(&Node::from_json(&manifest.scenario))?.seed;
        if manifest.seed != seed {
            return wrong("seed", manifest.seed.to_string(), seed.to_string());
        }
        let models = machine.models();
        if manifest.models != models {
            return wrong("models", format!("{:?}", manifest.models), format!("{models:?}"));
        }
        let activation = activation_of(machine);
        if manifest.activation != activation {
            return wrong("activation", format!("{:?}", manifest.activation), format!("{activation:?}"));
        }
        // A model that this build does not know may have been simulated, or not.
        let known: Result<Vec<bool>, _> =
            models.iter().map(|model| self.providers.for_model(model).map(|provider| provider.simulated())).collect();
        let simulated = known.map_or(manifest.simulated, |known| known.contains(&true));
        if manifest.simulated != simulated {
            return wrong("simulated", manifest.simulated.to_string(), simulated.to_string());
        }
        self.note_build(folder, &manifest.build);
        Ok(())
    }

    /// Says that a run was begun by another build: its rules may have been others.
    fn note_build(&self, folder: &Folder, build: &Build) {
        let this = Build::this();
        if *build != this {
            self.outside.notes.tell(&format!(
                "{} was begun by polity {} ({}), this is polity {} ({}): where they compute differently, a digest will tell",
                folder.path().display(),
                build.version,
                build.target,
                this.version,
                this.target
            ));
        }
    }
}
