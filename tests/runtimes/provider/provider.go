package main

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type probeProvider struct{}

type providerModel struct {
	Endpoint types.String `tfsdk:"endpoint"`
	Stubborn types.Bool   `tfsdk:"stubborn"`
}

func newProvider() provider.Provider { return &probeProvider{} }

func (*probeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "probe"
}

func (*probeProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"endpoint": schema.StringAttribute{
			Optional:    true,
			Description: "Base address of the server; PROBE_ENDPOINT where absent.",
		},
		"stubborn": schema.BoolAttribute{
			Optional:    true,
			Description: "Whether a call in flight is finished although the run was cancelled; PROBE_STUBBORN=1 where absent.",
		},
	}}
}

func (*probeProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var model providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made := &client{endpoint: os.Getenv("PROBE_ENDPOINT"), stubborn: os.Getenv("PROBE_STUBBORN") == "1"}
	if !model.Endpoint.IsNull() {
		made.endpoint = model.Endpoint.ValueString()
	}
	if !model.Stubborn.IsNull() {
		made.stubborn = model.Stubborn.ValueBool()
	}
	if made.endpoint == "" {
		resp.Diagnostics.AddError("No endpoint", "Set endpoint in the provider block, or PROBE_ENDPOINT.")
		return
	}
	resp.ResourceData = made
	resp.DataSourceData = made
}

func (*probeProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newThing}
}

func (*probeProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newCount}
}
