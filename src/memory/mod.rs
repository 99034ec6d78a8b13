//! What the agent remembers of a conversation.
