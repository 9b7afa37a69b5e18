"""Deploys CloudFormation templates by calling AWS APIs directly."""
