"""The Terraform engine: drives `terraform` or `tofu` as a child process, one step at a time, inside a guarded run."""
