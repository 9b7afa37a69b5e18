"""Root modules for the Terraform stories that need no provider beside the runtime's own."""

from __future__ import annotations

VALUE = """\
variable "value" {
  type    = string
  default = "one"
}

resource "terraform_data" "thing" {
  input = var.value

  provisioner "local-exec" {
    command = "echo made >> made"
  }
}

output "value" {
  value = terraform_data.thing.output
}
"""
"""One resource whose value is a variable's."""

FROM_FILE = """\
resource "terraform_data" "thing" {
  input = file("${path.module}/wanted")
}
"""
"""One resource whose value is in the file `wanted`."""

REPLACED = """\
variable "value" {
  type    = string
  default = "one"
}

resource "terraform_data" "thing" {
  triggers_replace = var.value
}
"""
"""One resource that another value replaces."""

S3 = """\
terraform {
  backend "s3" {
    bucket                      = "states"
    key                         = "module.tfstate"
    region                      = "us-east-1"
    use_lockfile                = true
    use_path_style              = true
    skip_credentials_validation = true
    skip_metadata_api_check     = true
    skip_region_validation      = true
    skip_requesting_account_id  = true
  }
}
"""
"""A backend in the bucket `states` with a lock file; the endpoint comes by the environment."""

LOCAL = """\
terraform {
  backend "local" {
    path = "kept.tfstate"
  }
}
"""

HTTP = """\
terraform {
  backend "http" {}
}
"""
"""All that it needs to be told comes by TF_HTTP_*."""
