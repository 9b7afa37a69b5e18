"""What the guarded run and the engines need from outside, as small Protocols."""
