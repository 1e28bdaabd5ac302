"""Jobs on one node or many: the driver at the user's side, an agent on every node, and what passes between them."""
