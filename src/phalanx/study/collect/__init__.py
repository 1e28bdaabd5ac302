"""New issues for the study: from GitHub and Stack Exchange, over their APIs or from the public dump."""
