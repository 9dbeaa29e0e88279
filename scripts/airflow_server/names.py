"""What things are called here: the one user, the DAG, and the pool that keeps its writers apart."""

USER, DAG, POOL = "admin", "coldstore_pipeline", "lake_writer"
