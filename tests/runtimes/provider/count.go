package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// countSource is read while planning, so a test can hold up a plan.
type countSource struct{ client *client }

type countModel struct {
	Name    types.String `tfsdk:"name"`
	Created types.Int64  `tfsdk:"created"`
}

var _ datasource.DataSourceWithConfigure = (*countSource)(nil)

func newCount() datasource.DataSource { return &countSource{} }

func (*countSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_count"
}

func (*countSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"name":    schema.StringAttribute{Required: true},
		"created": schema.Int64Attribute{Computed: true, Description: "How many things of this name were ever made."},
	}}
}

func (s *countSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if made, ok := req.ProviderData.(*client); ok {
		s.client = made
	}
}

func (s *countSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model countModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	created, err := s.client.count(ctx, model.Name.ValueString())
	if err != nil {
		resp.Diagnostics.AddError("The count was not read", err.Error())
		return
	}
	model.Created = types.Int64Value(created)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
