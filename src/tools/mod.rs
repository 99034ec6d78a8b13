//! What engines may call; one tool a file.
