from tests.support.sites import *  # noqa: F403 - fixtures are found by their names
