"""Where telemetry lies, one source a file: how to fetch it, nothing about what it means."""
