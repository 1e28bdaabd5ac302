"""Labels for new issues: the diagnosis first, a small text model where it is silent."""
