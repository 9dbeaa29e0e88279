"""From bytes to columns and reasons."""
