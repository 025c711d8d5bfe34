"""What everything stands on: the backend, stores, particles and their neighbors."""
