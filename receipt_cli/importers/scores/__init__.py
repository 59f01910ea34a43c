"""Turn the results of evaluation programs into evaluation documents: JSON files, and tables in logs."""
