"""Whether everything that is needed is there, and what to do where it is not."""
