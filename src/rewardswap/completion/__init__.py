"""What makes a shell complete commands, names and keys at the tab key."""
