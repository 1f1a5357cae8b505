"""Why a run does not learn: known causes looked for in its record, each by a rule of its own."""
