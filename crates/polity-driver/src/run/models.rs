//! The models that a run asks: which they are, whether they can be asked, what they cost, and how they are called.

use super::Engine;
use super::manifest::{Asked, Manifest};
use super::prepare::{Prepared, blame};
use crate::source::{Batches, Ledger, Live, Outside, Ranks, Simulated, Source};
use polity_kernel::ask::{EffectId, TargetKind};
use polity_kernel::scenario::{Assembled, Budget, Price, Scenario};
use polity_models::models::prices::{self, Prices};
use polity_models::models::sim::Sim;
use polity_models::models::{Capabilities, Provider};
use polity_models::toolkits::{FILES, Place, Toolkits};
use polity_store::DriveError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

impl Engine<'_> {
    /// Returns the engine with the simulated models that the scenario's file declares, and its toolkits. `folder`: the folder of the run,
    /// in which toolkits keep their files.
    pub(super) fn with_models_of(
        &self,
        prepared: &Prepared,
        scenario: &Scenario,
        folder: Option<&Path>,
    ) -> Result<Self, DriveError> {
        let engine = self.with_simulated(prepared, scenario)?;
        if scenario.tools.is_empty() {
            return Ok(engine);
        }
        let place = Place { folder: folder.map(|folder| folder.join(FILES)), inputs: prepared.inputs.clone() };
        let toolkits = Toolkits::of(&scenario.tools, &place)?.and(super::listed::toolkits(prepared, scenario)?);
        if folder.is_some() {
            self.check_consent(&toolkits)?;
        }
        Ok(Engine { providers: Arc::new(engine.providers.behind(Arc::new(toolkits))), ..engine })
    }

    fn with_simulated(&self, prepared: &Prepared, scenario: &Scenario) -> Result<Self, DriveError> {
        let Some(path) = &scenario.simulated else { return Ok(self.clone()) };
        let wrong = |why: &str| blame(&prepared.tree, "simulated", &why);
        let text = prepared.inputs.texts.get(path).ok_or_else(|| wrong("the file was not read"))?;
        let models = Sim::standard_and(text).map_err(|why| wrong(&format!("{path}: {why}")))?;
        Ok(Engine { providers: Arc::new(self.providers.behind(Arc::new(models))), ..self.clone() })
    }

    pub(super) fn check_models_of(&self, machine: &Assembled, scenario: &Scenario) -> Result<Asked, DriveError> {
        self.check_models(machine.models(), machine.models_of_vectors(), scenario)
    }

    pub(super) fn check_models(
        &self,
        models: Vec<String>,
        of_vectors: Vec<String>,
        scenario: &Scenario,
    ) -> Result<Asked, DriveError> {
        let mut simulated = false;
        for model in &models {
            let provider = self.providers.for_model(model).map_err(DriveError::Model)?;
            let checked = if self.asks { provider.check(model) } else { provider.check_name(model) };
            checked.map_err(DriveError::Model)?;
            if !self.asks
                && let Err(why) = provider.check(model)
            {
                self.outside.notes.tell(&format!("a run cannot ask `{model}` yet: {why}"));
            }
            simulated |= provider.simulated();
            if provider.tells_costs() && scenario.prices.contains_key(model) {
                return Err(DriveError::Model(format!(
                    "`prices` names `{model}`, but its provider reports the cost of calls itself; remove the entry"
                )));
            }
        }
        for model in of_vectors {
            let provider = self.providers.for_model(&model).map_err(DriveError::Model)?;
            provider.makes_vectors(&model).map_err(DriveError::Model)?;
            if self.asks {
                provider.check(&model).map_err(DriveError::Model)?;
            }
        }
        if let Some(name) = scenario.prices.keys().find(|name| !name.contains('/')) {
            return Err(DriveError::Model(format!(
                "`prices` names `{name}`; a model is named `provider/model`, for instance `openai/{name}`"
            )));
        }
        self.tell_notices(&models);
        let prices = Prices::of(&models, &scenario.prices, |model| self.providers.for_model(model));
        Ok(Asked { models, simulated, prices, batch: self.outside.batch == Some(true) })
    }

    /// Shows the warnings about these models before they are called.
    pub(super) fn tell_notices(&self, models: &[String]) {
        let providers = models.iter().filter_map(|model| self.providers.for_model(model).ok());
        providers.flat_map(|provider| provider.notices()).for_each(|notice| self.outside.notes.tell(&notice));
    }

    /// A dollar limit requires known prices.
    pub(super) fn check_prices(&self, machine: &Assembled, budget: &Budget, prices: &Prices) -> Result<(), DriveError> {
        self.check_prices_of(machine.models(), budget, prices)
    }

    /// The same for models by name.
    pub(super) fn check_prices_of(
        &self,
        models: Vec<String>,
        budget: &Budget,
        prices: &Prices,
    ) -> Result<(), DriveError> {
        if !budget.bounds_dollars() {
            return Ok(());
        }
        for model in models {
            let provider = self.providers.for_model(&model).map_err(DriveError::Model)?;
            if provider.tells_costs() || prices.know(&model) {
                continue;
            }
            return Err(DriveError::Model(format!(
                "{}: its price is unknown, so a budget in dollars cannot be enforced. Give the price ({}), or limit tokens \
                 or calls, for instance --max-tokens 100000",
                at_address(provider, &model),
                how_to_price(&model)
            )));
        }
        Ok(())
    }

    /// Whether the price of a model of a run is known, so that a call of it without cost was free.
    #[must_use]
    pub fn knows_price(&self, manifest: &Manifest, model: &str) -> bool {
        manifest.knows_price(model, &self.providers)
    }

    /// Returns the models of a run whose price is not known.
    pub(super) fn unpriced(&self, manifest: &Manifest) -> Vec<String> {
        manifest.models.iter().filter(|model| !self.knows_price(manifest, model)).cloned().collect()
    }

    /// Checks that calls of a scenario cost dollars, and that all their prices are known: otherwise budgets cannot be equal in dollars.
    ///
    /// # Errors
    /// [`DriveError::Model`] for a model whose price is unknown, and if all models are free; those of scenarios.
    pub fn check_dollars(&self, prepared: &Prepared) -> Result<(), DriveError> {
        let scenario = Scenario::read(&prepared.tree)?;
        let engine = self.with_models_of(prepared, &scenario, None)?;
        let machine = self.assemble(prepared)?;
        let Asked { models, prices, .. } = engine.check_models_of(&machine, &scenario)?;
        let prices = prices.with(&Prices::from(self.outside.prices.clone()));
        let mut free = Vec::new();
        for model in models.iter().filter(|model| TargetKind::of(model) == TargetKind::Model) {
            let provider = engine.providers.for_model(model).map_err(DriveError::Model)?;
            let price = match provider.tells_costs() {
                true => provider.list_price(model),
                false => prices.by_name().get(model).copied(),
            };
            match price {
                Some(Price { input, output, .. }) if input == 0.0 && output == 0.0 => free.push(format!("`{model}`")),
                None if !provider.tells_costs() => {
                    return Err(DriveError::Model(format!(
                        "{}: its price is unknown, so budgets cannot be made equal in dollars. Give the price ({}), or make \
                         budgets equal in tokens or calls (--equal tokens)",
                        at_address(provider, model),
                        how_to_price(model)
                    )));
                }
                Some(_) | None => return Ok(()),
            }
        }
        Err(DriveError::Model(format!(
            "calls of {} cost nothing, so budgets cannot be made equal in dollars; make them equal in tokens or calls (--equal tokens)",
            free.join(", ")
        )))
    }

    /// The capabilities of models, as reported by their servers. All are probed in parallel, within the timeout of a provider's probe.
    /// Errors will show when requests are sent.
    pub(super) fn capabilities(&self, models: &[String]) -> BTreeMap<String, Capabilities> {
        let outside = |model: &&String| self.providers.for_model(model).is_ok_and(|provider| !provider.immediate());
        let models: Vec<String> = models.iter().filter(outside).cloned().collect();
        if models.is_empty() || self.faults.is_some() {
            return BTreeMap::new();
        }
        let (tells, told) = mpsc::channel();
        if let Ok(runtime) = self.providers.runtime() {
            for model in models {
                let (providers, tells) = (self.providers.clone(), tells.clone());
                runtime.spawn(async move {
                    if let Ok(provider) = providers.for_model(&model)
                        && let Some(capabilities) = provider.probe(&model).await
                    {
                        // The receiver waits for this, so it still exists.
                        let _ = tells.send((model, capabilities));
                    }
                });
            }
        }
        drop(tells);
        told.iter().collect()
    }

    /// `recorded`: batches, the request ledger, and requests that may have been answered; `None` for calls outside of a run.
    pub(super) fn source(
        &self,
        scenario: &Scenario,
        prices: &Prices,
        ranks: Option<Ranks>,
        recorded: Option<(Batches, Ledger, BTreeSet<EffectId>)>,
    ) -> Box<dyn Source> {
        let seed = scenario.seed;
        match self.faults {
            None => {
                let of_scenario = scenario.patience.map(|patience| Duration::from_secs_f64(patience.seconds()));
                let outside = Outside { patience: self.outside.patience.or(of_scenario), ..self.outside.clone() };
                let live = Live::new(self.providers.clone(), seed, self.connections, &outside);
                let mut live = live.with_prices(prices.clone());
                if let Some((batches, ledger, in_doubt)) = recorded {
                    live = live.with_batches(batches).with_ledger(ledger).with_doubts(in_doubt);
                }
                if let Some(ranks) = ranks {
                    live = live.with_ranks(ranks);
                }
                Box::new(live)
            }
            Some(faults) => Box::new(Simulated::new(self.providers.clone(), seed, faults)),
        }
    }

    /// Which of these models are called in batches; notes which are not.
    pub(super) fn batched(&self, machine: &Assembled, manifest: &Manifest) -> BTreeSet<String> {
        if !manifest.batch {
            return BTreeSet::new();
        }
        // Batches support conversations only.
        let of_vectors = machine.models_of_vectors();
        let has = |model: &&String| {
            let provider = self.providers.for_model(model);
            !of_vectors.contains(model) && provider.is_ok_and(|provider| provider.batching().is_some())
        };
        let (batched, not): (Vec<&String>, Vec<&String>) = manifest.models.iter().partition(has);
        if !not.is_empty() {
            let not: Vec<&str> = not.into_iter().map(String::as_str).collect();
            self.outside
                .notes
                .tell(&format!("batches are not available for {}; questions are sent one by one", not.join(", ")));
        }
        batched.into_iter().cloned().collect()
    }
}

/// A model, with the address of its server if it has one.
fn at_address(provider: &dyn Provider, model: &str) -> String {
    provider.address(model).map_or(format!("`{model}`"), |address| format!("`{model}` at {address}"))
}

/// The flag that gives the price of a model.
fn how_to_price(model: &str) -> String {
    match prices::listed(model) {
        Some(price) => format!(
            "--price {model}={} is the price at the model's own provider; this address may charge a different one",
            prices::words(&price)
        ),
        None => format!("--price {model}=0.15,0.60, in US dollars per million tokens of requests and of replies"),
    }
}
