"""A small Django project that the benchmark's workers run: project/settings.py and the flows of `bench`."""
