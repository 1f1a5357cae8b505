"""A run in the browser while it goes on: a server for this machine alone, which writes nothing."""
