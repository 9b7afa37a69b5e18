"""Ways to change the world behind one port. No engine knows another."""
