"""The store board: pages in Airflow's navigation, drawn from the published snapshot on the server; they work without internet and without scripts."""
