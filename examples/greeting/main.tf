variable "name" {
  type    = string
  default = "world"
}

resource "terraform_data" "greeting" {
  input = "hello, ${var.name}"
}

resource "terraform_data" "log" {
  triggers_replace = terraform_data.greeting.output

  provisioner "local-exec" {
    command = "echo greeted"
  }
}

output "greeting" {
  value = terraform_data.greeting.output
}
