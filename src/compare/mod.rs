//! Two baselines in, verdicts and an exit code out.
