// Command provider is the provider `probe`: its resources live in the HTTP server that a test starts, so the test knows
// what exists and how often it was made, and can make any call slow, failing, hanging or without an answer.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
)

func main() {
	opts := providerserver.ServeOpts{Address: "registry.terraform.io/stackhold/probe", ProtocolVersion: 6}
	if err := providerserver.Serve(context.Background(), newProvider, opts); err != nil {
		log.Fatal(err)
	}
}
