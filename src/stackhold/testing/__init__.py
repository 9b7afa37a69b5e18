"""Public doubles and conformance suites. A double is trusted because it passes the real thing's suite."""
