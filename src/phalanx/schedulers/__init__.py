"""What a scheduler knows of a job that has ended, and the post-mortem that is written beside its output."""
