def of_run(lake, run_id): return "SUMMARY"
