"""Developer tools: set-up and test scripts, benchmarks, sweeps."""
