//! Settings from the environment, checked before anything runs.
