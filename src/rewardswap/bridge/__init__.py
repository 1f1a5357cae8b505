"""Our methods inside other trainers."""
