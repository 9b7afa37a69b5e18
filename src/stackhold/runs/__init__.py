"""The guarded run: lock, heartbeat, two clocks, stops, intents, the record's saves, release."""
