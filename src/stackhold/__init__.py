"""Changes cloud infrastructure without two writers, lost state or runaway runs."""
