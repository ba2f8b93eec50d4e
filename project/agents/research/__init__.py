"""The research agent: an app to copy, and no part of Outlast."""
