"""The deployment agent: a canary in a change window, and the small cloud that it is deployed to."""
