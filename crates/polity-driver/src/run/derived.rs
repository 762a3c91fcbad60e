//! Derived parts of a manifest, and the build of a run.

use super::engine::Engine;
use super::folder::Folder;
use super::manifest::{Build, Manifest, activation_of};
use polity_kernel::scenario::{Assembled, Scenario};
use polity_kernel::tree::Node;
use polity_store::DriveError;

impl Engine<'_> {
    /// Compares the derived parts of a manifest with the scenario: they are never trusted.
    pub(super) fn check_derived(
        &self,
        folder: &Folder,
        manifest: &Manifest,
        machine: &Assembled,
    ) -> Result<(), DriveError> {
        let wrong = |key: &str, there: String, derived: String| {
            Err(DriveError::Folder(format!(
                "{}: `{key}` is {there}, but its scenario says {derived}; restore the original",
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
        // A model unknown to this build may or may not have been simulated.
        let known: Result<Vec<bool>, _> =
            models.iter().map(|model| self.providers.for_model(model).map(|provider| provider.simulated())).collect();
        let simulated = known.map_or(manifest.simulated, |known| known.contains(&true));
        if manifest.simulated != simulated {
            return wrong("simulated", manifest.simulated.to_string(), simulated.to_string());
        }
        self.note_build(folder, &manifest.build);
        Ok(())
    }

    /// Notes that a run was started by another build, whose rules may differ.
    fn note_build(&self, folder: &Folder, build: &Build) {
        let this = Build::this();
        if *build != this {
            self.outside.notes.tell(&format!(
                "{} was begun by polity {} ({}), but this is polity {} ({}): if they compute different results, the \
                 digests will differ",
                folder.path().display(),
                build.version,
                build.target,
                this.version,
                this.target
            ));
        }
    }
}
