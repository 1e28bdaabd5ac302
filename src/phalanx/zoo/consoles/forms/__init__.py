"""Ways in which the output of a job reaches a user; a module added here adds its forms."""
