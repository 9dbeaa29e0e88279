"""What DAGs and jobs share: settings, table names and columns, rules. Standard library only."""
