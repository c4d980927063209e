//! Walks sizes within a time budget, verifies before timing, writes the sidecar.
