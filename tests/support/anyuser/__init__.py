"""A project whose accounts have a UUID for a key and are called by their e-mail address. Run as a module it plays a scene with reviewers."""
