"""Results of runs and their comparison, made from nothing but run folders and results' lines."""
