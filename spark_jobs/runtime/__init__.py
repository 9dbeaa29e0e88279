"""Where jobs touch the world: session, storage, lake, lease, ledger and the run's own state."""
