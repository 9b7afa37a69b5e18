"""What to do next, as pure functions: values and `now` in, a verdict out."""
