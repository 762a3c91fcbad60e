//! What a scenario may set.

use polity_kernel::Invalid;
use schemars::JsonSchema;
use serde::Deserialize;

/// What messages say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// The channel of the device.
    #[default]
    True,
    /// A placebo: a channel drawn at random, anew for each who hears it.
    Random,
}

/// Parameters of the world.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Params {
    /// Devices per unit of area; 0.001 to 10. The plane is a square torus.
    pub(super) density: f64,
    /// Channels; 1 to 64.
    pub(super) channels: u32,
    /// Signals fade with this power of the distance; 1 to 6. Distances below a half count as a half.
    pub(super) fading: f64,
    /// Nothing is received from further than this; 0.5 to 100, at most half a side of the plane.
    pub(super) reach: f64,
    /// Power of the noise at each receiver; 1e-9 to 1.
    pub(super) noise: f64,
    /// Distance of a device's own user: even from half of this to this; 0.1 to 10.
    pub(super) user: f64,
    /// Ratio of signal to interference and noise that each user needs: a rate of log2(1 + target); 0.01 to 1000.
    pub(super) target: f64,
    /// Maximum power, with which all begin; above 0, up to 1e6.
    pub(super) max_power: f64,
    /// Energy of a message; 0 to 1e6. A round of power 1 takes an energy of 1.
    pub(super) message_cost: f64,
    /// Probability that one who is in reach does not get a message; 0 to 1.
    pub(super) loss: f64,
    /// What messages say.
    pub(super) content: Content,
    /// The intent allows this share of the energy of all devices at maximum power; 0 to 1.
    pub(super) cut: f64,
    /// The intent asks that all users have had their rate in so many rounds in a row; 1 to 10000.
    pub(super) hold: u32,
}

impl Default for Params {
    fn default() -> Self {
        Params {
            density: 20.0 / 144.0,
            channels: 3,
            fading: 3.0,
            reach: 5.0,
            noise: 0.001,
            user: 1.2,
            target: 4.0,
            max_power: 10.0,
            message_cost: 1.0,
            loss: 0.3,
            content: Content::True,
            cut: 0.1,
            hold: 10,
        }
    }
}

impl Params {
    /// Returns the length of a side of the plane.
    pub(super) fn side(&self, agents: u32) -> f64 {
        (f64::from(agents) / self.density).sqrt()
    }

    pub(super) fn check(&self, agents: u32) -> Result<(), Invalid> {
        for (key, value, low, high) in [
            ("density", self.density, 0.001, 10.0),
            ("fading", self.fading, 1.0, 6.0),
            ("reach", self.reach, 0.5, 100.0),
            ("noise", self.noise, 1e-9, 1.0),
            ("user", self.user, 0.1, 10.0),
            ("target", self.target, 0.01, 1000.0),
            ("max_power", self.max_power, 1e-6, 1e6),
            ("message_cost", self.message_cost, 0.0, 1e6),
            ("loss", self.loss, 0.0, 1.0),
            ("cut", self.cut, 0.0, 1.0),
        ] {
            Invalid::within(low..=high, key, value)?;
        }
        Invalid::within(1..=64, "channels", self.channels)?;
        Invalid::within(1..=10_000, "hold", self.hold)?;
        Invalid::unless(agents > 0, "kind", "needs a device")?;
        // Everybody would hear hundreds of others, or the same one from two sides.
        let (side, heard) = (self.side(agents), core::f64::consts::PI * self.reach * self.reach * self.density);
        let message = format!("must be at most half a side of the plane ({:.2}), is {}", side / 2.0, self.reach);
        Invalid::unless(2.0 * self.reach <= side, "reach", message)?;
        let message = format!("about {heard:.0} devices are in reach of each, more than 500");
        Invalid::unless(heard <= 500.0, "reach", message)
    }
}
