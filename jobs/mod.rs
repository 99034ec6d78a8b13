//! One file per job kind: the front page of the program.
