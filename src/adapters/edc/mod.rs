//! Electronic data capture: where a study's dictionary and records come from.
