"""What is published, for who only reads it: by delta-rs, without Spark, in Airflow's environment as well as in Spark's."""
