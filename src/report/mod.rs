//! Reads results, finds crossovers, draws plots, writes the page and `summary.json`.
