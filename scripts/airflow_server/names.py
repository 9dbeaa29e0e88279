"""What things are called here: the one address, the one user, the DAG, and the pool that keeps its writers apart."""

LOCALHOST, USER, DAG, POOL = "127.0.0.1", "admin", "coldstore_pipeline", "lake_writer"
