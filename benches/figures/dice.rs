//! Repeatable randomness (SplitMix64): the same study and the same arrivals on every machine and with
//! every version of every library.

pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// In 0..1.
    #[allow(
        clippy::cast_precision_loss,
        reason = "53 bits are what a double holds"
    )]
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// In 0..below.
    pub fn below(&mut self, below: u64) -> i64 {
        i64::try_from(self.next() % below.max(1)).unwrap_or(0)
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }
}
