"""The verdict where people look: webhooks, commands, mail, Prometheus, and the summary of a CI run."""
