//! Codes: which bits of an object are sent, and which object is named for them.

use super::Coding;
use polity_kernel::Invalid;

/// A code that maps objects of `facts` bits to messages of fewer bits, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The first facts as they are.
    Facts {
        /// How many.
        amount: u32,
    },
    /// The nearest word of the perfect Hamming code, without its check bits.
    Hamming {
        /// Facts of an object: 2^m - 1.
        facts: u32,
    },
    /// Whether most facts are 1.
    Majority {
        /// Facts of an object: an odd number.
        facts: u32,
    },
}

impl Code {
    /// Returns the code of a kind that sends `amount` bits of `facts`.
    ///
    /// # Errors
    /// More bits than facts, or a number of bits for which no perfect code is known here.
    pub fn of(kind: Coding, facts: u32, amount: u32) -> Result<Code, Invalid> {
        Invalid::within(1..=facts, "amount", amount)?;
        if kind == Coding::Facts || amount == facts {
            return Ok(Code::Facts { amount });
        }
        if amount == 1 && facts % 2 == 1 {
            return Ok(Code::Majority { facts });
        }
        let checks = (facts + 1).trailing_zeros();
        let fits = (facts + 1).is_power_of_two() && amount == facts - checks;
        let message = format!(
            "no perfect code sends {amount} bits of {facts}; there is one for 1 bit of an odd number, and for 4 of 7 or \
             11 of 15"
        );
        Invalid::unless(fits, "amount", message)?;
        Ok(Code::Hamming { facts })
    }

    /// Returns the bits that are sent.
    pub fn encode(self, object: u32) -> u32 {
        match self {
            Code::Facts { amount } => object & ((1 << amount) - 1),
            Code::Majority { facts } => u32::from(object.count_ones() * 2 > facts),
            Code::Hamming { facts } => {
                let wrong = syndrome(object, facts);
                let word = if wrong == 0 { object } else { object ^ 1 << (wrong - 1) };
                let sent = places(facts).filter(|place| !place.is_power_of_two()).enumerate();
                sent.map(|(i, place)| (word >> (place - 1) & 1) << i).sum()
            }
        }
    }

    /// Returns the object that is named for the bits.
    pub fn decode(self, sent: u32) -> u32 {
        match self {
            Code::Facts { .. } => sent,
            Code::Majority { facts } => (sent & 1) * ((1 << facts) - 1),
            Code::Hamming { facts } => {
                let of = places(facts).filter(|place| !place.is_power_of_two()).enumerate();
                let word: u32 = of.map(|(i, place)| (sent >> i & 1) << (place - 1)).sum();
                // Each check bit stands alone at its power of two.
                let checks = syndrome(word, facts);
                let checked = places(facts).filter(|place| place.is_power_of_two() && checks & place != 0);
                word | checked.map(|place| 1u32 << (place - 1)).sum::<u32>()
            }
        }
    }
}

/// The places of a word, from 1 on.
fn places(facts: u32) -> std::ops::RangeInclusive<u32> {
    1..=facts
}

/// Returns the sum of the places that are 1, without carries: 0 for a word of the code, else the place that is wrong.
fn syndrome(word: u32, facts: u32) -> u32 {
    places(facts).filter(|place| word >> (place - 1) & 1 == 1).fold(0, |sum, place| sum ^ place)
}
