//! Vocabulary shared by every rung: no I/O, no SQL, no clock but [`clock`].

pub mod catch_up;
pub mod causality;
pub mod clock;
pub mod cron;
pub mod dictionary;
pub mod finding;
pub mod ids;
pub mod iso_week;
pub mod local_time;
pub mod near_miss;
pub mod project;
pub mod protocol;
pub mod record;
pub mod rule;
pub mod text;
