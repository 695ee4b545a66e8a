"""Jobs of dead workers come back: the checker, and the middleware that runs it."""
