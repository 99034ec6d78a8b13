//! Ids as types of their own, so that a run's id can't be handed where a message's is meant.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, sqlx::Type,
        )]
        #[serde(transparent)]
        #[sqlx(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id; version 7, so ids made later sort later.
            #[must_use]
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(s: &str) -> Result<Self, Self::Err> {
                s.parse().map(Self)
            }
        }
    };
}

uuid_id!(
    /// One inbound message (`iit_inbox`).
    MessageId
);
uuid_id!(
    /// One run of a skill over one record (`iit_task_run`).
    RunId
);
uuid_id!(
    /// One QC request over one record, some, or a whole project (`iit_batches`).
    BatchId
);
uuid_id!(
    /// One finding in the ledger (`iit_pending_actions`).
    PendingActionId
);
uuid_id!(
    /// One outbound message (`iit_outbox`).
    OutboxId
);
