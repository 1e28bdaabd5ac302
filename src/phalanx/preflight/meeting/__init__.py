"""How ranks under the user's own launcher come together for a check: a shared folder, MASTER_ADDR itself, or what they print."""
