"""EchoMQ on Redis: keys, scripts, clients, records. Knows neither Dramatiq's workers nor the wings above it."""
