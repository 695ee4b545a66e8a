"""What is wrong with a queue or its server, what it means, and the repairs that lose no job."""
