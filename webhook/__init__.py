"""Messages to somebody outside: alert events and notices, posted and signed. Without Spark."""
