"""Django's system checks of flows and of the settings they run under."""
