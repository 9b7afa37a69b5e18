"""The manager: the same guarded runs as Kubernetes Jobs.

Pure modules decide (what runs, under which policy, whose lease it is, what a status says) and work on plain documents
and on our own types; only the edge modules talk to an API server.
"""
