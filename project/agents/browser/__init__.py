"""The browser agent: fills in a form of a site that has no API, and sends it when a person has confirmed it."""
