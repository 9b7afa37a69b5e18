package main

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type thingResource struct{ client *client }

type thingModel struct {
	ID           types.String `tfsdk:"id"`
	Name         types.String `tfsdk:"name"`
	Value        types.String `tfsdk:"value"`
	Kind         types.String `tfsdk:"kind"`
	Secret       types.String `tfsdk:"secret"`
	CreatedCount types.Int64  `tfsdk:"created_count"`
}

var _ resource.ResourceWithImportState = (*thingResource)(nil)

func newThing() resource.Resource { return &thingResource{} }

func (*thingResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_thing"
}

func (*thingResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replaces := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	resp.Schema = schema.Schema{Attributes: map[string]schema.Attribute{
		"id": schema.StringAttribute{
			Computed:      true,
			Description:   "Made by the server, another one at each creation.",
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"name":   schema.StringAttribute{Required: true, PlanModifiers: replaces},
		"value":  schema.StringAttribute{Optional: true, Description: "Changed in place."},
		"kind":   schema.StringAttribute{Optional: true, PlanModifiers: replaces},
		"secret": schema.StringAttribute{Optional: true, Sensitive: true},
		"created_count": schema.Int64Attribute{
			Computed:      true,
			Description:   "How many things of this name had been made when this one was.",
			PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		},
	}}
}

func (r *thingResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	if made, ok := req.ProviderData.(*client); ok {
		r.client = made
	}
}

func (r *thingResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var model thingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	made, err := r.client.create(ctx, model.wanted())
	if err != nil {
		resp.Diagnostics.AddError("The thing was not created", err.Error())
		return
	}
	model.ID = types.StringValue(made.ID)
	model.CreatedCount = types.Int64Value(made.CreatedCount)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *thingResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var model thingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	found, err := r.client.read(ctx, model.ID.ValueString())
	if errors.Is(err, errGone) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		resp.Diagnostics.AddError("The thing was not read", err.Error())
		return
	}
	model.Name = types.StringValue(found.Name)
	model.Value = optional(found.Value)
	model.Kind = optional(found.Kind)
	model.Secret = optional(found.Secret)
	model.CreatedCount = types.Int64Value(found.CreatedCount)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *thingResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var model thingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if _, err := r.client.update(ctx, model.ID.ValueString(), model.wanted()); err != nil {
		resp.Diagnostics.AddError("The thing was not updated", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}

func (r *thingResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var model thingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.client.remove(ctx, model.ID.ValueString()); err != nil {
		resp.Diagnostics.AddError("The thing was not deleted", err.Error())
	}
}

func (*thingResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
}

func (m thingModel) wanted() thing {
	return thing{
		Name:   m.Name.ValueString(),
		Value:  m.Value.ValueString(),
		Kind:   m.Kind.ValueString(),
		Secret: m.Secret.ValueString(),
	}
}

// optional reads the server's empty text as a value that was not set.
func optional(text string) types.String {
	if text == "" {
		return types.StringNull()
	}
	return types.StringValue(text)
}
