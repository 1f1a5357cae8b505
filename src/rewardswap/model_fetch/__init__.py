"""Models that the Python Package Index has, as folders that can be trained."""
