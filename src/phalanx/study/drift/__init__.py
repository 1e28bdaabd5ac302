"""What is new in collected issues: what rises, what no rule knows, what a release introduced; drafts of rules for it."""
