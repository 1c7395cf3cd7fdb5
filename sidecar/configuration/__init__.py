"""What flags, environment and files decide, and the plan that comes of it."""
