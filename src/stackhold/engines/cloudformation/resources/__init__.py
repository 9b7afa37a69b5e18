"""Native resource handlers: one file per AWS service, one class per type, and the table that names them."""
