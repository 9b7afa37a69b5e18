"""The command line: one file per verb; parse, call, render, exit code. No rules live here."""
