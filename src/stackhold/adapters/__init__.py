"""Ports made real: directories, S3, AWS, the machine's clock."""
