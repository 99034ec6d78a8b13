//! From a message to intents.
