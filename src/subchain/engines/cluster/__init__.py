"""Hidden chains on the processes of a Dask cluster."""
