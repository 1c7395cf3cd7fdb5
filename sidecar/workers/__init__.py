"""Several processes behind one address, and the one that counts for them."""
