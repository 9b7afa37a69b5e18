"""Side-by-side measurements: ratios and counts, never absolute times to assert on."""
