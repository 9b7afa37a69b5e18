"""Values: ids, instants, the record, the lock, the run. Frozen, no I/O, nothing that decides."""
