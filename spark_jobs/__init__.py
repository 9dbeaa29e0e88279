"""The jobs of the pipeline: one entry point per Airflow task."""
