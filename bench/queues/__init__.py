"""What bench/capacity.py certifies: simulated servers whose capacity is known in closed form."""
