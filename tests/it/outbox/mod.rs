//! Messages on their way to WeCom, on real rows: refused, too many, unclear, cut off, and sent again on
//! purpose.

mod card;
mod desk;
mod gate;
mod kill;
mod operators;
mod pace;
mod unclear;
