"""What the repository's own commands run; not part of the package."""
